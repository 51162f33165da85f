// Training runs that somebody measured and published, as a file of rows: `config` says what ran (layers, hidden, heads,
// tp, pp, dp, micro_batch, gpu_type, ... in the words of papers), `measured` its step time or another figure from which
// it follows. Each row becomes settings of ours, which anybody can type. Thread rule: pure. Torch-free.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/config/settings/sources.h"

namespace ranklab {

// What a row says was measured. Figures that depend on a formula of FLOPs are of this formula's.
struct MeasuredFigures {
  std::optional<double> step_s;
  std::optional<double> mfu;         // of this project's model FLOPs, where no time is given
  std::optional<double> peak_bytes;  // of a GPU
  bool reserved = true;              // with what the allocator holds in reserve
  bool on_device = false;            // with all else on the GPU, too, as nvidia-smi says
  bool first_stage = false;          // of a rank of the first pipeline stage, not of the fullest
  // Bytes of tensors on a rank of the last pipeline stage: after a step, and at most.
  std::optional<double> static_bytes, last_stage_peak_bytes;
};

struct MeasuredRun {
  std::string id, source, gpu;
  std::string conditions;  // release, network and other things that must be alike where layouts are compared
  std::vector<ConfigSetting> settings;
  MeasuredFigures measured;
  std::string left_out;  // why the row cannot be planned; empty: it can
};

// The rows of a JSON file: a list, or an object with a list "rows" or "runs". Throws kIo, and kBadFile for another
// file.
std::vector<MeasuredRun> read_measured_runs(const std::string& path);

}  // namespace ranklab
