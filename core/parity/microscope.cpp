#include "core/parity/microscope.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/config/one_rank.h"
#include "core/config/precision_choice.h"
#include "core/config/settings/fields.h"
#include "core/parity/rounding/in_fp32.h"
#include "core/parity/smaller_layouts.h"

namespace ranklab {
namespace {

constexpr uint64_t kPerturbations = 2, kMorePerturbations = 5;

// If nothing was recorded, "nothing differs" would look like a proof.
void check_has_steps(const ParityRecord& record, int64_t steps, const std::string& load) {
  RANKLAB_CHECK(!record.tensors.empty() || !record.ended.empty(), ErrorKind::kInvalidArgument, .where = "parity",
                .what = "no step was trained, so there is nothing to compare",
                .got = "--train-iters " + std::to_string(steps) + (load.empty() ? "" : " from --load " + load),
                .want = "at least one step",
                .fix = load.empty() ? "raise --train-iters" : "raise --train-iters above the step of the checkpoint");
}

// Whether two runs add the same numbers in the same order: both are on one rank with the same settings. Dispatchers add
// a token's expert outputs in different orders even on one rank.
bool does_the_same(const ParityRecord& run, const ParityRecord& reference) {
  if (!run.plan || !reference.plan || run.mesh.world_size() > 1 || reference.mesh.world_size() > 1) return false;
  const TrainConfig &own = run.plan->config, &other = reference.plan->config;
  if (own.model.moe.enabled() && own.moe_dispatcher != other.moe_dispatcher) return false;
  const TrainConfig a = on_one_rank(own), b = on_one_rank(other);
  return std::ranges::all_of(config_fields(), [&](const ConfigField& field) { return field.get(a) == field.get(b); });
}

// Experts are spread over ranks of the other axes, so reducing any of these axes to one rank also puts the experts on
// one rank. Therefore a difference that disappears with ep reduced alone is about ep.
bool is_about_experts(const std::vector<std::string>& needed) {
  return std::ranges::find(needed, "ep") != needed.end();
}

// Whether the difference may be nothing but rounding. One element can cause all of a tensor's distance: AdamW moves a
// weight whose gradient nearly vanishes by rounding divided by the gradient, and the layers of the next step carry that
// on. Such a distance is a single random number. If all these distances were draws from one half-normal distribution, a
// draw would exceed eight times the largest of three others in one of 600 runs, and of eight others in one of a
// million. A distance far beyond the tolerance is not of this kind; an update may enlarge rounding errors more than
// sums do.
bool may_be_rounding(const ParityResult& result) {
  constexpr double kFar = 100, kFarAfterUpdate = 1e4;  // as multiples of the tolerance
  const TensorVerdict* first = result.wrong();
  if (!result.ended.empty() || first == nullptr || !first->broken.empty() || first->tolerance == 0) return false;
  const bool updated = first->key.step > 0 || first->key.kind == "updated weight";
  return first->worst.eps < (updated ? kFarAfterUpdate : kFar) * first->tolerance;
}

}  // namespace

std::string ParityResult::axis() const {
  std::vector<std::string> needed;
  for (const NarrowedTo& one : narrowed)
    if (one.gone) needed.push_back(one.axis);
  for (const Explanation& one : why) {
    for (const std::string& axis : one.axes)
      if (needed.empty() || std::ranges::find(needed, axis) != needed.end()) return axis;
  }
  if (is_about_experts(needed)) return "ep";
  return needed.empty() ? "" : needed.front();
}

Microscope::OneThread::OneThread() : before_(at::get_num_threads()) { at::set_num_threads(1); }
Microscope::OneThread::~OneThread() { at::set_num_threads(before_); }

ParityRecord Microscope::run_reference(const char* what, uint64_t perturb, SumOrder order) const {
  if (options_.progress) options_.progress(what);
  ParityRecord record =
      record_run(reference_config_, make_world_,
                 {.steps = options_.steps, .perturb = perturb, .order = order, .components = options_.components});
  RANKLAB_CHECK(record.ended.empty(), ErrorKind::kInvalidArgument, .where = "parity",
                .what = "the reference itself does not run to its end", .got = record.ended,
                .fix = "--against another layout");
  return record;
}

Microscope::Microscope(const TrainConfig& reference, MakeParityWorld make_world, ParityOptions options)
    : make_world_(std::move(make_world)), options_(std::move(options)), reference_config_(reference) {
  reference_ = std::make_unique<ParityReference>(run_reference("the reference", 0, {}), std::vector<ParityRecord>{});
  for (uint64_t seed = 1; seed <= kPerturbations; ++seed)
    reference_->add(run_reference("the reference, perturbed", seed, {}));
  // Microbatches are reversed only without a pipeline, since middle stages of a pipeline number microbatches
  // themselves.
  const bool can_reverse = resolve(reference).mesh.size(Axis::kPp) == 1;
  reference_->add(run_reference("the reference, added in another order", 0, {.reversed = can_reverse, .split = true}));
}

// A copy of the reference with wider tolerances, so that the first comparison of a layout does not depend on which
// layouts came before. The runs are made only once.
const ParityReference& Microscope::after_more_runs() const {
  if (wider_) return *wider_;
  auto wider = std::make_unique<ParityReference>(*reference_);
  for (uint64_t seed = kPerturbations + 1; seed <= kPerturbations + kMorePerturbations; ++seed)
    wider->add(run_reference("the reference, perturbed", seed, {}));
  wider_ = std::move(wider);
  return *wider_;
}

Microscope::Microscope(MakeParityWorld make_world, ParityOptions options)
    : make_world_(std::move(make_world)), options_(std::move(options)) {}

// Whether this run has the difference that `result` found.
bool Microscope::shows(const TrainConfig& config, const ParityReference* want, const ParityResult& result) const {
  const ParityRecord record =
      record_run(config, make_world_, {.steps = options_.steps, .components = options_.components});
  if (!result.ended.empty()) return !record.ended.empty();
  const TensorKey& key = result.wrong()->key;
  if (!record.tensors.contains(key)) return false;
  if (want == nullptr) return audit(record, key).wrong();
  return judge(record, *want, key, does_the_same(record, want->record())).wrong();
}

void Microscope::narrow(const TrainConfig& config, const ParityReference* want, ParityResult& result) const {
  for (const SmallerLayout& smaller : smaller_layouts(config)) {
    if (options_.progress) options_.progress("the layout with " + smaller.flags);
    result.narrowed.push_back({smaller.axis, smaller.flags, !shows(smaller.config, want, result)});
  }
  // Removes one part of the layout after another, as long as the difference stays.
  TrainConfig least = config;
  for (bool changed = true; changed;) {
    changed = false;
    for (const SmallerLayout& smaller : smaller_layouts(least)) {
      const auto known = std::ranges::find(result.narrowed, smaller.axis, &NarrowedTo::axis);
      if (known != result.narrowed.end() && known->gone) continue;
      if (options_.progress) options_.progress("smaller: " + layout_flags(smaller.config));
      if (!shows(smaller.config, want, result)) continue;
      least = smaller.config;
      changed = true;
      break;
    }
  }
  result.smallest = layout_flags(least);
}

ParityResult compare_with_reference(const ParityRecord& got, const ParityReference& want) {
  ParityResult result{
      .title = got.title, .reference = want.record().title, .type = got.type, .mesh = got.mesh, .ended = got.ended};
  result.comparison = compare(got, want, does_the_same(got, want.record()));
  if (const TensorVerdict* wrong = result.wrong()) {
    result.why = explain(got, want, *wrong);
    result.where = where_wrong(got, want, *wrong);
    result.place = coordinates_text(wrong->worst.place, want.whole(wrong->key).shape);
  }
  return result;
}

ParityResult audited(const ParityRecord& got) {
  ParityResult result{
      .title = got.title, .reference = "its own copies", .type = got.type, .mesh = got.mesh, .ended = got.ended};
  result.comparison = audit(got);
  if (const TensorVerdict* wrong = result.wrong()) {
    result.why = explain_copies(got, wrong->key);
    result.place = coordinates_text(wrong->worst.place, got.tensors.at(wrong->key).front().slice.shape);
  }
  return result;
}

const Microscope& Microscope::wide() const {
  if (wide_) return *wide_;
  ParityOptions options = options_;
  if (options_.progress) options.progress = [this](const std::string& what) { options_.progress("in fp32: " + what); };
  wide_ = std::make_unique<Microscope>(in_fp32(reference_config_), make_world_, std::move(options));
  return *wide_;
}

ParityResult Microscope::examine(const TrainConfig& config) const {
  ParityResult result = examine_as_it_is(config);
  const std::string low_precision = low_precision_cause(resolve(config));
  if (!reference_ || result.differs() || low_precision.empty()) return result;
  ParityResult in_wide = wide().examine(in_fp32(config));
  if (in_wide.differs()) result = std::move(in_wide);
  result.low_precision = low_precision;
  return result;
}

ParityResult Microscope::examine_as_it_is(const TrainConfig& config) const {
  if (options_.progress) options_.progress("the layout");
  const ParityRecord record =
      record_run(config, make_world_, {.steps = options_.steps, .components = options_.components});
  check_has_steps(record, options_.steps, config.load);
  const ParityReference* want = reference_.get();
  ParityResult result = want != nullptr ? compare_with_reference(record, *want) : audited(record);
  if (want != nullptr && may_be_rounding(result)) {
    want = &after_more_runs();
    result = compare_with_reference(record, *want);
  }
  if (options_.narrow && result.differs()) narrow(config, want, result);
  return result;
}

}  // namespace ranklab
