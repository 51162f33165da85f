// Runs a layout and its reference, finds the first tensor in causal order that differs, and explains why (TTrace, arXiv
// 2506.09280; the tolerance of each tensor is derived by running the reference with weights changed by one unit in the
// last place, and with its sums in another order). Then it runs smaller layouts to find which parts of the layout the
// difference needs. Cost: four runs of the reference and one of the layout; if there is a difference, one run of each
// smaller layout; if the difference could still be rounding, five more runs of the reference; in low precision, if
// nothing differs, all of it again in fp32. Thread rule: main thread.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/parity/compare/compare.h"
#include "core/parity/explain.h"
#include "core/parity/record_run.h"

namespace ranklab {

struct ParityOptions {
  int64_t steps = 2;
  bool narrow = true;                                     // run smaller layouts
  std::function<void(const std::string&)> progress = {};  // called with what runs now
  MakeParityParts components =
      {};  // for every run, if the program brings its own model or data; null: the default ones
};

// The result of trying the layout without one of its parts.
struct NarrowedTo {
  std::string axis, flags;
  bool gone = false;  // without this part there is no difference
};

struct ParityResult {
  std::string title, reference;  // the names of the two runs
  c10::ScalarType type = c10::ScalarType::Float;
  // "mxfp8" if the run was also compared with its reference in fp32. This happens if nothing differs in this precision;
  // a difference reported here is then one between the two runs in fp32.
  std::string low_precision = {};
  ParityMesh mesh = {};
  std::string ended = {};  // the error of a run that failed
  ParityComparison comparison = {};
  std::vector<Explanation> why = {};
  std::string where = {};
  std::string place = {};  // where the largest difference is in the global tensor: "[3, 0, 17]"
  std::vector<NarrowedTo> narrowed = {};
  std::string smallest = {};  // the smallest layout that still shows the difference, as flags

  const TensorVerdict* wrong() const { return comparison.first_wrong(); }
  bool differs() const { return !ended.empty() || wrong() != nullptr; }
  // The mesh axis to blame: the one that the difference needs, or the one that explains it; "" if neither is known.
  std::string axis() const;
};

// Compares two records: what differs first, and why.
ParityResult compare_with_reference(const ParityRecord& got, const ParityReference& want);

// Checks one record without a reference: the first tensor whose copies on several ranks differ (audit() in compare.h).
ParityResult audited(const ParityRecord& got);

// One reference for many layouts; or no reference, and then runs are audited.
class Microscope {
 public:
  // Throws kInvalidArgument for an invalid configuration, or if the reference does not run to its end.
  Microscope(const TrainConfig& reference, MakeParityWorld make_world, ParityOptions options);
  Microscope(MakeParityWorld make_world, ParityOptions options);
  // A run in low precision that shows no difference is also examined in fp32: a bug that scales a tensor by less than
  // its rounding, or that moves only some of its elements, is a fault of the layout and does not depend on the
  // precision.
  ParityResult examine(const TrainConfig& config) const;
  const ParityReference& reference() const { return *reference_; }  // REQUIRES: there is a reference

 private:
  ParityResult examine_as_it_is(const TrainConfig& config) const;
  const Microscope& wide() const;
  ParityRecord run_reference(const char* what, uint64_t perturb, SumOrder order) const;
  const ParityReference& after_more_runs() const;
  bool shows(const TrainConfig& config, const ParityReference* want, const ParityResult& result) const;
  void narrow(const TrainConfig& config, const ParityReference* want, ParityResult& result) const;

  // Runs the math library with one thread: the tensors are small, and more threads would only wait for each other.
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
  std::unique_ptr<ParityReference> reference_;      // null: there is no reference and runs are audited
  mutable std::unique_ptr<ParityReference> wider_;  // after_more_runs(), once one was needed
  mutable std::unique_ptr<Microscope> wide_;        // the same for the reference in fp32, once it was needed
};

}  // namespace ranklab
