#include "core/runtime/pipeline/replayed_function.h"

#include <algorithm>
#include <utility>

#include "core/sim/aten.h"
#include "core/sim/op_observer.h"

namespace ranklab {
namespace {

bool same_kind(const at::Tensor& a, const at::Tensor& b) {
  return a.sizes() == b.sizes() && a.scalar_type() == b.scalar_type() && a.device() == b.device();
}

}  // namespace

ReplayedFunction::ReplayedFunction(std::shared_ptr<GraphRecorder> recorder, Function function)
    : recorder_(std::move(recorder)), function_(std::move(function)) {}

ReplayedFunction::Result ReplayedFunction::operator()(const GraphTensors& inputs) {
  if (inputs_.size() != inputs.size() || !std::equal(inputs.begin(), inputs.end(), inputs_.begin(), same_kind))
    recapture(inputs);
  {
    const NoCostScope no_cost;
    const at::NoGradGuard no_grad;
    for (size_t i = 0; i < inputs.size(); ++i) inputs_[i].copy_(inputs[i], /*non_blocking=*/true);
  }
  if (warm_ups_ < kWarmUps) {
    ++warm_ups_;
    return {recorder_->run([this] { return function_(inputs_); })};
  }
  if (graph_ == nullptr) record();
  std::shared_ptr<const CallTiming> timing = graph_->replay();
  note_peak();
  return {graph_->outputs(), std::move(timing)};
}

void ReplayedFunction::recapture(const GraphTensors& inputs) {
  graph_.reset();  // freed before the memory that it reads
  warm_ups_ = 0;
  inputs_.clear();
  const NoCostScope no_cost;
  const MemoryScope memory(MemoryCategory::kBuffers);
  for (const at::Tensor& input : inputs) inputs_.push_back(at::empty_like(input));
}

void ReplayedFunction::record() {
  const auto body = [this] { return function_(inputs_); };
  const std::shared_ptr<MemoryBook> book = thread_memory_book();
  if (book == nullptr) {
    graph_ = recorder_->record(body);
    return;
  }
  const MemoryBook::Peaks before = book->peaks();
  book->reset_peaks();
  graph_ = recorder_->record(body);
  taken_ = book->peaks().above(book->bytes());
  book->raise_peaks(before);
}

void ReplayedFunction::note_peak() const {
  const std::shared_ptr<MemoryBook> book = thread_memory_book();
  if (book != nullptr) book->raise_peaks(taken_.on(book->bytes()));
}

}  // namespace ranklab
