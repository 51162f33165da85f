// Runs a layout and its reference, finds the first tensor in causal order that differs, and why (TTrace, arXiv
// 2506.09280; the tolerance of each tensor is derived by running the reference with other weights by one unit in the
// last place, and with its sums in another order). Then it runs smaller layouts to find what the difference
// needs. Cost: four runs of the reference, one of the layout, and with a difference one of each smaller layout; a
// difference that could be rounding after all costs five more of the reference; in few bits, where nothing differs, all
// of it comes once more in fp32. Thread rule: main thread.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/parity/compare.h"
#include "core/parity/explain.h"
#include "core/parity/record_run.h"

namespace ranklab {

struct ParityOptions {
  int64_t steps = 2;
  bool narrow = true;                                     // run smaller layouts
  std::function<void(const std::string&)> progress = {};  // what runs now
  MakeParityParts components = {};  // of every run, for a model or data of the program's own; null: the default ones
};

// What came of trying a layout with one thing less.
struct NarrowedTo {
  std::string axis, flags;
  bool gone = false;  // the difference is not there
};

struct ParityResult {
  std::string title, reference;  // of the two runs
  c10::ScalarType type = c10::ScalarType::Float;
  // "mxfp8", where the run was held to its reference in fp32, too: nothing differs in these bits, and where this
  // differs, it is of the two runs in fp32.
  std::string few_bits = {};
  ParityMesh mesh = {};
  std::string ended = {};  // of a run that failed: its error
  ParityComparison comparison = {};
  std::vector<Explanation> why = {};
  std::string where = {};
  std::string place = {};  // of the largest difference, in the global tensor: "[3, 0, 17]"
  std::vector<NarrowedTo> narrowed = {};
  std::string smallest = {};  // the smallest layout that still shows the difference, as flags

  const TensorVerdict* wrong() const { return comparison.first_wrong(); }
  bool differs() const { return !ended.empty() || wrong() != nullptr; }
  // The axis that is to blame: what the difference needs, or what explains it; "" where nothing tells.
  std::string axis() const;
};

// Two records beside each other: what differs first, and why.
ParityResult held_to(const ParityRecord& got, const ParityReference& want);

// One record alone: the first tensor of which ranks' copies differ (audit() in compare.h).
ParityResult audited(const ParityRecord& got);

// One reference for many layouts, or none: then runs are audited.
class Microscope {
 public:
  // Throws kInvalidArgument for an invalid configuration, and where the reference does not run to its end.
  Microscope(const TrainConfig& reference, MakeParityWorld make_world, ParityOptions options);
  Microscope(MakeParityWorld make_world, ParityOptions options);
  // A run in few bits that does not differ there is examined in fp32, too: what scales a tensor by less than its
  // rounding, or moves some of its elements, is of the layout and not of the bits.
  ParityResult examine(const TrainConfig& config) const;
  const ParityReference& reference() const { return *reference_; }  // REQUIRES: there is one

 private:
  ParityResult examine_as_it_is(const TrainConfig& config) const;
  const Microscope& wide() const;
  ParityRecord run_reference(const char* what, uint64_t perturb, SumOrder order) const;
  const ParityReference& after_more_runs() const;
  bool shows(const TrainConfig& config, const ParityReference* want, const ParityResult& result) const;
  void narrow(const TrainConfig& config, const ParityReference* want, ParityResult& result) const;

  // Tensors are small: more threads of the math library would wait for each other.
  class OneThread {
   public:
    OneThread();
    ~OneThread();
    OneThread(const OneThread&) = delete;
    OneThread& operator=(const OneThread&) = delete;

   private:
    int before_;
  };

  OneThread one_thread_;
  MakeParityWorld make_world_;
  ParityOptions options_;
  TrainConfig reference_config_;
  std::unique_ptr<ParityReference> reference_;      // null: runs are audited
  mutable std::unique_ptr<ParityReference> wider_;  // after_more_runs(), once one was needed
  mutable std::unique_ptr<Microscope> wide_;        // of the reference in fp32, once one was needed
};

}  // namespace ranklab
