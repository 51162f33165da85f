#include "core/runtime/pipeline/replayed_function.h"

#include <utility>

#include "core/runtime/pipeline/recorded_inputs.h"

namespace ranklab {

ReplayedFunction::ReplayedFunction(std::shared_ptr<GraphRecorder> recorder, Function function)
    : recorder_(std::move(recorder)), function_(std::move(function)) {}

ReplayedFunction::Result ReplayedFunction::operator()(const GraphTensors& inputs) {
  if (!same_kinds(inputs, inputs_)) recapture(inputs);
  copy_into(inputs_, inputs);
  if (warm_ups_ < kWarmUps) {
    ++warm_ups_;
    return {recorder_->run([this] { return function_(inputs_); })};
  }
  if (graph_ == nullptr) record();
  std::shared_ptr<const CallTiming> timing = graph_->replay();
  memory_.note_replay();
  return {graph_->outputs(), std::move(timing)};
}

void ReplayedFunction::recapture(const GraphTensors& inputs) {
  graph_.reset();  // freed before the memory that it reads
  warm_ups_ = 0;
  inputs_ = empty_like(inputs);
}

void ReplayedFunction::record() {
  memory_ = {};
  memory_.measure([this] { graph_ = recorder_->record([this] { return function_(inputs_); }); });
}

}  // namespace ranklab
