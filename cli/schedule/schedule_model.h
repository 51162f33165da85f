// The model and machine of a `ranklab schedule` command: the size of a message between stages, and the cost of each
// stage, computed without a run. Thread rule: pure functions.
#pragma once
#include <string>

#include "core/pipeline/pipeline_costs.h"

namespace ranklab {

class CommandLine;

struct ScheduleModel {
  std::string preset;  // empty: gpt_tiny, with costs given by the user
  std::string hardware = "h100-sxm";
  int tp = 1;
  int64_t micro_batch_size = 1;
  int64_t seq_length = 0;  // 0: the preset's
  int64_t num_layers = 0;  // 0: the preset's
  bool bf16 = false;       // parameters and messages between stages are bf16; else fp32

  bool gives_costs() const { return !preset.empty(); }
  std::string name() const { return preset.empty() ? "gpt_tiny" : preset; }
  const char* dtype() const { return bf16 ? "bf16" : "fp32"; }
};

void add_model_options(CommandLine& app, ScheduleModel& model);

// The size of an activation, or of its gradient, that a rank sends to the next stage. Throws kInvalidArgument for a
// model that tp does not divide.
int64_t message_bytes(const ScheduleModel& model);
std::string message_text(const ScheduleModel& model);  // "64 KiB (gpt_tiny, 1 x 128 tokens in fp32)"

// Throws kInvalidArgument if there are more stages than layers.
PipelineCosts costs_of_model(const ScheduleModel& model, const Schedule& schedule);

}  // namespace ranklab
