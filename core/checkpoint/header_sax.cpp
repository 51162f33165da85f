#include "core/checkpoint/header_sax.h"

#include <limits>
#include <utility>

#include "core/base/text.h"
#include "core/checkpoint/read_only_file.h"

namespace ranklab {

SafetensorsHeader HeaderSax::take() { return std::move(header_); }

std::string HeaderSax::here() const {
  switch (place_) {
    case Place::kStart:
    case Place::kDone:
      return "the header";
    case Place::kMember:
      return "member " + quote(printable(tensor_.name));
    case Place::kMetadata:
      return "__metadata__: " + quote(printable(field_));
    case Place::kTensor:
    case Place::kShape:
    case Place::kOffsets:
      return "tensor " + quote(tensor_.name) + ": " + printable(field_);
  }
  return {};
}

void HeaderSax::refuse(const std::string& what, const std::string& got, const std::string& want) const {
  refuse_checkpoint_file(path_, here() + " " + what, got, want);
}

void HeaderSax::refuse_value(const std::string& got) const {
  const char* want = "an object";
  if (place_ == Place::kMetadata || (place_ == Place::kTensor && field_ == "dtype")) want = "a string";
  if (place_ == Place::kTensor && field_ != "dtype") want = "an array of whole numbers";
  if (place_ == Place::kShape || place_ == Place::kOffsets) want = "whole numbers from 0 to 2^63 - 1";
  refuse("has the wrong type", got, want);
}

bool HeaderSax::null() { refuse_value("null"); }
bool HeaderSax::boolean(bool value) { refuse_value(value ? "true" : "false"); }
bool HeaderSax::number_integer(number_integer_t value) { refuse_value(std::to_string(value)); }
bool HeaderSax::number_float(number_float_t, const string_t& text) { refuse_value(printable(text)); }
bool HeaderSax::binary(binary_t&) { refuse_value("binary"); }

bool HeaderSax::number_unsigned(number_unsigned_t value) {
  const bool in_array = place_ == Place::kShape || place_ == Place::kOffsets;
  if (!in_array || value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
    refuse_value(std::to_string(value));
  if (place_ == Place::kShape) {
    constexpr size_t kMostDims = 64;
    if (tensor_.shape.size() == kMostDims) refuse("is too long", "more", std::to_string(kMostDims) + " dims at most");
    tensor_.shape.push_back(static_cast<int64_t>(value));
    return true;
  }
  if (offsets_ == 2) refuse("is too long", "a third number", "begin and end");
  (offsets_++ == 0 ? tensor_.begin : tensor_.end) = value;
  return true;
}

bool HeaderSax::string(string_t& value) {
  if (place_ == Place::kMetadata) {
    header_.metadata[field_] = value;
    return true;
  }
  if (place_ != Place::kTensor || field_ != "dtype") refuse_value(quote(printable(value)));
  if (!find_tensor_type(value, tensor_.type))
    refuse("is unknown to this program", quote(printable(value)), "one of " + tensor_type_names());
  has_type_ = true;
  return true;
}

bool HeaderSax::start_object(std::size_t) {
  if (place_ == Place::kMember && tensor_.name == "__metadata__") {
    place_ = Place::kMetadata;
  } else if (place_ == Place::kMember) {
    place_ = Place::kTensor;
    field_.clear();
    has_type_ = has_shape_ = false;
    offsets_ = -1;
  } else if (place_ == Place::kStart) {
    place_ = Place::kMember;
  } else {
    refuse_value("an object");
  }
  return true;
}

bool HeaderSax::key(string_t& value) {
  if (place_ == Place::kMember) {
    tensor_ = {.name = value};
    if (value == "__metadata__" ? std::exchange(has_metadata_, true) : !names_.insert(value).second)
      refuse("appears twice", "a second one", "each name once");
    const std::string fault = value == "__metadata__" ? "" : fault_of_tensor_name(value);
    if (!fault.empty()) refuse("has a name that " + fault, quote(printable(value)), "printable UTF-8");
    return true;
  }
  field_ = value;
  if (place_ == Place::kMetadata) {
    if (header_.metadata.contains(value)) refuse("appears twice", "a second one", "each key once");
    return true;
  }
  const bool known = value == "dtype" || value == "shape" || value == "data_offsets";
  if (!known) refuse("is not a field of a tensor", quote(printable(value)), "dtype, shape and data_offsets");
  if (value == "dtype" ? has_type_ : value == "shape" ? has_shape_ : offsets_ >= 0)
    refuse("appears twice", "a second one", "each field once");
  return true;
}

bool HeaderSax::start_array(std::size_t) {
  if (place_ != Place::kTensor || field_ == "dtype") refuse_value("an array");
  if (field_ == "shape") {
    place_ = Place::kShape;
    has_shape_ = true;
  } else {
    place_ = Place::kOffsets;
    offsets_ = 0;
  }
  return true;
}

bool HeaderSax::end_array() {
  if (place_ == Place::kOffsets && offsets_ != 2) refuse("is too short", std::to_string(offsets_), "begin and end");
  place_ = Place::kTensor;
  return true;
}

void HeaderSax::finish_tensor() {
  const char* missing = !has_type_ ? "dtype" : !has_shape_ ? "shape" : offsets_ < 0 ? "data_offsets" : nullptr;
  if (missing != nullptr) {
    field_ = missing;
    refuse("is missing", "none", "dtype, shape and data_offsets");
  }
  header_.tensors.push_back(std::move(tensor_));
}

bool HeaderSax::end_object() {
  if (place_ == Place::kTensor) finish_tensor();
  place_ = place_ == Place::kMember ? Place::kDone : Place::kMember;
  return true;
}

bool HeaderSax::parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& error) {
  refuse_checkpoint_file(path_, "the header is not JSON at byte " + std::to_string(position),
                         printable(error.what(), 160), "the header of a safetensors file");
}

}  // namespace ranklab
