// One key of a transformers config.json and the member of our configuration to which it corresponds. It is read and
// written by the same row, so that export and import agree. A key may also stand for something for which ranklab
// supports only one value; any other value is refused by the key's name. Thread rule: immutable.
#pragma once
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "core/spec/model_config.h"

namespace ranklab {

using HfJson = nlohmann::ordered_json;

inline HfJson not_written() { return HfJson(HfJson::value_t::discarded); }

// A JSON value with its location, for messages.
class HfValue {
 public:
  HfValue(HfJson json, std::string key, const std::string& path)
      : json_(std::move(json)), key_(std::move(key)), path_(path) {}
  bool is_null() const { return json_.is_null(); }
  const HfJson& json() const { return json_; }
  int64_t integer() const;  // these throw kBadFile when the value has another type
  double number() const;
  bool boolean() const;
  std::string text() const;
  // Throws kInvalidArgument: transformers allows the value, ranklab does not.
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
  // Empty, or returns not_written(): the key is read but not written.
  std::function<HfJson(const ModelConfig&)> get = {};
  std::function<void(ModelConfig&, const HfValue&)> set = {};
  bool required = false;
  HfJson absent = {};      // the value that a file without the key implies
  std::string other = {};  // an alternative name that some versions write
};

// A member copied unchanged: `member` maps a configuration to a reference.
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
// A count: 1 or more.
template <typename Member>
HfKey hf_count(std::string key, Member member) {
  HfKey row = hf_member(std::move(key), member);
  row.set = [set = std::move(row.set)](ModelConfig& c, const HfValue& value) {
    if (value.integer() < 1) value.refuse_damaged("1 or more");
    set(c, value);
  };
  return row;
}
// A key with only one supported value, which a file without the key is assumed to have.
HfKey hf_constant(std::string key, HfJson value);
// Read, but has no effect on the model; not written.
HfKey hf_unused(std::string key);
// Written for transformers, but has no effect on the model.
HfKey hf_note(std::string key, HfJson value);

// Joins lists of keys, or of rules (rules.h).
template <typename Row>
std::vector<Row> together(std::initializer_list<std::vector<Row>> lists) {
  std::vector<Row> all;
  for (const std::vector<Row>& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

}  // namespace ranklab

// Makes an accessor of a member, for hf_member().
#define RANKLAB_HF(member) \
  [](auto& c) -> auto& { return c.member; }
