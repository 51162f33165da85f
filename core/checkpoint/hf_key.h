// One key of a config.json of transformers and the number of ours that it is, read and written by the same row: so what
// is exported is what is imported. A key may also stand for something that ranklab has in one form only; then another
// value is refused by the key's name. Thread rule: immutable.
#pragma once
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "core/spec/model_config.h"

namespace ranklab {

using HfJson = nlohmann::ordered_json;

inline HfJson not_written() { return HfJson(HfJson::value_t::discarded); }

// A value with its place, for messages.
class HfValue {
 public:
  HfValue(HfJson json, std::string key, const std::string& path)
      : json_(std::move(json)), key_(std::move(key)), path_(path) {}
  bool is_null() const { return json_.is_null(); }
  const HfJson& json() const { return json_; }
  int64_t integer() const;  // the following throw kBadFile when the value is of another type
  double number() const;
  bool boolean() const;
  std::string text() const;
  // kInvalidArgument: transformers has the value, ranklab does not.
  [[noreturn]] void refuse(const std::string& want) const;
  [[noreturn]] void refuse_damaged(const std::string& want) const;  // kBadFile: no such value belongs there

  void into(int64_t& out) const { out = integer(); }
  void into(double& out) const { out = number(); }
  void into(bool& out) const { out = boolean(); }

 private:
  HfJson json_;
  std::string key_;
  const std::string& path_;
};

struct HfKey {
  std::string key = {};
  // None, or one that gives not_written(): the key is read only.
  std::function<HfJson(const ModelConfig&)> get = {};
  std::function<void(ModelConfig&, const HfValue&)> set = {};
  bool required = false;
  HfJson absent = {};      // what a file without the key means
  std::string other = {};  // a name of it that some versions write instead
};

// A member as it is: `member` turns a configuration into a reference.
template <typename Member>
HfKey hf_member(std::string key, Member member) {
  return {std::move(key), [member](const ModelConfig& c) { return HfJson(member(c)); },
          [member](ModelConfig& c, const HfValue& value) { value.into(member(c)); }, true};
}
template <typename Member>
HfKey hf_member(std::string key, Member member, HfJson absent) {
  HfKey row = hf_member(std::move(key), member);
  row.required = false;
  row.absent = std::move(absent);
  return row;
}
// A member that counts something: 1 or more.
template <typename Member>
HfKey hf_count(std::string key, Member member) {
  HfKey row = hf_member(std::move(key), member);
  row.set = [set = std::move(row.set)](ModelConfig& c, const HfValue& value) {
    if (value.integer() < 1) value.refuse_damaged("1 or more");
    set(c, value);
  };
  return row;
}
// A key that has one value here; a file without it has that value.
HfKey hf_constant(std::string key, HfJson value);
// Written for transformers, and without meaning for the model.
HfKey hf_note(std::string key, HfJson value);

}  // namespace ranklab

// The member as a function, for hf_member().
#define RANKLAB_HF(member) \
  [](auto& c) -> auto& { return c.member; }
