#include "core/checkpoint/hf/key.h"

#include <limits>

#include "core/base/text.h"
#include "core/checkpoint/hf/refusal.h"
#include "core/checkpoint/read_only_file.h"

namespace ranklab {
namespace {

std::string shown(const HfJson& json) { return printable(json.dump(-1, ' ', true)); }

}  // namespace

void HfValue::refuse(const std::string& want) const {
  refuse_hf_feature(path_, quote(printable(key_)) + " has a value that ranklab cannot represent", shown(json_), want);
}

void HfValue::refuse_damaged(const std::string& want) const {
  refuse_checkpoint_file(path_, quote(printable(key_)) + " has a value of the wrong type", shown(json_), want);
}

int64_t HfValue::integer() const {
  constexpr auto kMost = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  if (!json_.is_number_integer() || (json_.is_number_unsigned() && json_.get<uint64_t>() > kMost))
    refuse_damaged("a whole number");
  return json_.get<int64_t>();
}

double HfValue::number() const {
  if (!json_.is_number()) refuse_damaged("a number");
  return json_.get<double>();
}

bool HfValue::boolean() const {
  if (!json_.is_boolean()) refuse_damaged("true or false");
  return json_.get<bool>();
}

std::string HfValue::text() const {
  if (!json_.is_string()) refuse_damaged("a text");
  return json_.get<std::string>();
}

HfKey hf_constant(std::string key, HfJson value) {
  const auto get = [value](const ModelConfig&) { return value; };
  const auto set = [value](ModelConfig&, const HfValue& got) {
    if (got.json() != value) got.refuse(shown(value));
  };
  return {std::move(key), get, set, false, value};
}

HfKey hf_unused(std::string key) {
  return {std::move(key), {}, [](ModelConfig&, const HfValue&) {}};
}

HfKey hf_note(std::string key, HfJson value) {
  return {std::move(key), [value](const ModelConfig&) { return value; }, [](ModelConfig&, const HfValue&) {}};
}

}  // namespace ranklab
