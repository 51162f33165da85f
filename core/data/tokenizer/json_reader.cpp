#include "core/data/tokenizer/json_reader.h"

#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"

namespace ranklab::tokenizers {
namespace {

constexpr uint32_t kMostId = (1 << 24) - 1;  // for the largest vocabulary
const Json kNull;

}  // namespace

std::string shown_json(const Json& value) {
  constexpr size_t kShown = 80;
  if (value.is_structured()) return value.type_name();
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > kShown) text = text.substr(0, kShown) + "...";
  return without_controls(std::move(text));
}

Json JsonReader::parse(const std::string& text) const {
  try {
    return Json::parse(text);
  } catch (const Json::exception& error) {
    std::string why = error.what();
    refuse("the file is not JSON", without_controls(why.substr(0, 160)), "the tokenizer that its program wrote");
  }
}

const Json& JsonReader::member(const Json& object, const char* name) const {
  if (!object.is_object())
    refuse(std::string("no object to look for \"") + name + "\" in", shown_json(object), "an object");
  const auto found = object.find(name);
  return found == object.end() ? kNull : *found;
}

bool JsonReader::flag(const Json& object, const char* name, bool otherwise) const {
  const Json& value = member(object, name);
  if (value.is_null()) return otherwise;
  if (!value.is_boolean()) refuse(std::string("\"") + name + "\" is not a Boolean", shown_json(value), "true or false");
  return value.get<bool>();
}

std::string JsonReader::text(const Json& object, const char* name) const {
  const Json& value = member(object, name);
  if (!value.is_string()) refuse(std::string("\"") + name + "\" is not a string", shown_json(value), "a string");
  return value.get<std::string>();
}

uint32_t JsonReader::id(const Json& value, const char* name) const {
  if (!value.is_number_unsigned() || value.get<uint64_t>() > kMostId)
    refuse(std::string("\"") + name + "\" is not a token id", shown_json(value), "0 to " + std::to_string(kMostId));
  return static_cast<uint32_t>(value.get<uint64_t>());
}

const Json& JsonReader::list(const Json& object, const char* name) const {
  const Json& value = member(object, name);
  if (!value.is_array()) refuse(std::string("\"") + name + "\" is not a list", shown_json(value), "a list");
  return value;
}

void JsonReader::refuse(std::string what, std::string got, std::string want) const {
  throw Error(ErrorKind::kBadFile, {.where = "tokenizer",
                                    .what = quote(path_) + ": " + std::move(what),
                                    .got = std::move(got),
                                    .want = std::move(want),
                                    .fix = "download or write the file again"});
}

void JsonReader::lacks(std::string what, std::string got, std::string want) const {
  throw Error(ErrorKind::kInvalidArgument,
              {.where = "tokenizer",
               .what = quote(path_) + ": " + std::move(what),
               .got = without_controls(std::move(got)),
               .want = std::move(want),
               .fix = "use a byte-level BPE tokenizer, as GPT-2, Llama 3, Qwen and DeepSeek-V3 have"});
}

}  // namespace ranklab::tokenizers
