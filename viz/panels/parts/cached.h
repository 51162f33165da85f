// A table that is recomputed only when its inputs have changed. Thread rule: one thread.
#pragma once
#include <optional>
#include <utility>

namespace ranklab::viz {

template <typename Key, typename Value>
class Cached {
 public:
  template <typename Make>
  const Value& get(const Key& key, Make&& make) {
    if (!value_ || !(key == key_)) {
      value_.emplace(make());
      key_ = key;
    }
    return *value_;
  }
  void forget() { value_.reset(); }

 private:
  Key key_{};
  std::optional<Value> value_;
};

}  // namespace ranklab::viz
