// A run's model, layout and pipeline as text, for the start banner, --dry-run and others. Thread rule: pure.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/config/train_config.h"

namespace ranklab {

// "gpt_tiny: 870k parameters, 4 layers, hidden 128, sequence 128, fp32". `parameters`: the number created.
std::string model_title(const RunPlan& plan, int64_t parameters);
// Says that the matrix products of a large model do not use the GPU's 16-bit matrix units; "" if they do, or if there
// are none.
std::string fp32_hint(const RunPlan& plan);
// How sequences are split: "p2p, zigzag"; "a2a between 4, p2p between 2, zigzag". REQUIRES: cp above 1.
std::string context_text(const RunPlan& plan);
// The ranks with the same dense parameters: "dp 8", "dp x cp = 8", or "dp 8 in 2 groups" if each group shards them.
std::string replicas_text(const RunPlan& plan);
// "pp 4 x dp 1 x tp 2", with pp only if there is a pipeline; with its schedule "pp 4 (zb-h1) x dp 1 x tp 2"; with cp
// "dp 1 x cp 8 (p2p, zigzag) x tp 1"; with experts also "pp 2 x dp 2 x tp 2, experts edp 1 x ep 4".
std::string layout_text(const RunPlan& plan, bool with_schedule = false);
// Model and layout in one line, with the microbatches, for titles.
std::string run_title(const RunPlan& plan);
// "; from 8 sequences by 8 over the first 1024"; "" if batches do not grow.
std::string ramp_text(const RunPlan& plan);
// "1f1b, 4 stages of 1 layer; bubble 27.3 % of the total where F, B and W take equally long"
std::string pipeline_text(const RunPlan& plan);
nlohmann::ordered_json pipeline_json(const RunPlan& plan);

}  // namespace ranklab
