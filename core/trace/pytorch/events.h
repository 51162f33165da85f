// Reads one file of PyTorch's profiler, event by event, and converts the relevant fields to the terms used here. Thread
// rule: one thread.
#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/trace/event.h"

namespace ranklab {

class PytorchEvents {
 public:
  void section(const std::string& key, const nlohmann::json& value);
  void event(const nlohmann::json& value);

  bool empty() const { return slices_.empty(); }
  int rank() const { return rank_; }
  int world_size() const { return world_size_; }
  int64_t base_ns() const { return base_ns_; }
  int64_t first_ns() const;  // of the slices; does not include base_ns()
  // The rank's trace, with `origin_ns` subtracted from all times.
  RankTrace trace(int64_t origin_ns) const;

 private:
  struct Call {
    Verb verb = Verb::kBarrier;
    DType dtype = DType::kOther;
    std::string group;        // its name
    std::string description;  // of the group
    std::vector<int> members;
    int64_t elements_in = 0;
    int64_t elements_out = 0;
    int peer = -1;  // global rank
  };
  struct Slice {
    std::string name;
    int64_t begin_ns = 0;
    int64_t end_ns = 0;
    bool gpu = false;
    bool call = false;
    Call of_call;
  };
  struct Step {
    int number = 0;
    int64_t begin_ns = 0;
    int64_t end_ns = 0;
    bool gpu = false;
  };
  static bool read_call(const std::string& name, const nlohmann::json& args, Call& call);
  int step_at(int64_t time_ns, bool gpu) const;

  int rank_ = 0;
  int world_size_ = 0;
  int64_t base_ns_ = 0;
  std::vector<Slice> slices_;
  std::vector<Step> steps_;
};

}  // namespace ranklab
