// Training runs that somebody measured and published, as a file of rows. `config` describes the run (layers, hidden,
// heads, tp, pp, dp, micro_batch, gpu_type, ... named as in papers); `measured` holds its step time, or another figure
// from which it follows. Each row is converted to settings of this program, which anybody can type. Thread rule: pure.
// Torch-free.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/config/settings/sources.h"

namespace ranklab {

// The figures that a row reports as measured. Figures that depend on a formula for FLOPs use this project's formula.
struct MeasuredFigures {
  std::optional<double> step_s;
  std::optional<double> mfu;         // with this project's model FLOPs, if no time is given
  std::optional<double> peak_bytes;  // peak memory of a GPU
  bool reserved = true;              // includes the allocator's reserve
  bool on_device = false;            // includes everything else on the GPU, as nvidia-smi reports
  bool first_stage = false;          // for a rank of the first pipeline stage, not for the fullest rank
  // Bytes of tensors on a rank of the last pipeline stage: after a step, and at the peak.
  std::optional<double> static_bytes, last_stage_peak_bytes;
};

struct MeasuredRun {
  std::string id, source, gpu;
  std::string conditions;  // release, network and other conditions that must be equal where layouts are compared
  std::vector<ConfigSetting> settings;
  MeasuredFigures measured;
  std::string left_out;  // why the row cannot be planned; empty if it can
};

// The rows of a JSON file, which is a list, or an object with a list "rows" or "runs". Throws kIo, and kBadFile for any
// other file.
std::vector<MeasuredRun> read_measured_runs(const std::string& path);

}  // namespace ranklab
