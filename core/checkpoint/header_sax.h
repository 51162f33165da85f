// The grammar of a safetensors header as a SAX parser: it builds no JSON tree and refuses the first token that is out
// of place. Thread rule: one thread.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <unordered_set>

#include "core/checkpoint/safetensors_header.h"

namespace ranklab {

class HeaderSax : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit HeaderSax(const std::string& path) : path_(path) {}
  SafetensorsHeader take();  // call after the whole text was parsed

  bool null() override;
  bool boolean(bool value) override;
  bool number_integer(number_integer_t value) override;
  bool number_unsigned(number_unsigned_t value) override;
  bool number_float(number_float_t value, const string_t& text) override;
  bool string(string_t& value) override;
  bool binary(binary_t& value) override;
  bool start_object(std::size_t elements) override;
  bool key(string_t& value) override;
  bool end_object() override;
  bool start_array(std::size_t elements) override;
  bool end_array() override;
  bool parse_error(std::size_t position, const std::string& last, const nlohmann::detail::exception& error) override;

 private:
  // The position in the grammar, which determines what value may come next.
  enum class Place { kStart, kMember, kMetadata, kTensor, kShape, kOffsets, kDone };
  [[noreturn]] void refuse(const std::string& what, const std::string& got, const std::string& want) const;
  [[noreturn]] void refuse_value(const std::string& got) const;
  std::string here() const;  // "tensor 'x': shape"
  void finish_tensor();

  const std::string& path_;
  SafetensorsHeader header_;
  std::unordered_set<std::string> names_;
  Place place_ = Place::kStart;
  std::string field_;  // the current field of the tensor or of the metadata
  bool has_metadata_ = false;
  TensorEntry tensor_;
  bool has_type_ = false, has_shape_ = false;
  int offsets_ = -1;  // how many were read; -1: the field is missing
};

}  // namespace ranklab
