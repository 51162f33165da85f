// What a program can observe of a run. Hooks are called on global rank 0's thread, in the order they were added; an
// exception from a hook ends the run like an exception from a rank.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/config/train_config.h"
#include "core/runtime/sentinels/report.h"
#include "core/trace/event.h"

namespace ranklab {

// Counts of what happened to a rank's buckets and units in a step (ZeRO; without a stage only gradients are reduced),
// and their full sizes in bytes.
struct ZeroCounters {
  int64_t reduced = 0, reduced_bytes = 0;    // gradient buckets, reduced over the ranks
  int64_t updated = 0, updated_bytes = 0;    // parameter buckets, gathered after the update
  int64_t gathered = 0, gathered_bytes = 0;  // units of parameters, gathered for a use (stage 3)
  int64_t freed = 0;                         // units freed after their use
  std::string text() const;                  // "reduced 6 buckets (1.2 MiB), ..."
};

struct StepMetrics {
  int64_t step = 0;
  double loss = 0;       // mean over the tokens of the global batch that have a target
  double grad_norm = 0;  // before clipping
  double lr = 0;
  int64_t tokens = 0;  // number of tokens that have a target
  // These are 0 for models without such losses:
  double mtp_loss = 0;      // mean over these tokens and the multi-token-prediction modules, without their weight
  double moe_aux_loss = 0;  // balancing losses per token, with or without a target, multiplied by their coefficients
  double moe_z_loss = 0;
  double total_loss = 0;  // what backward minimizes: the loss, the losses above, and the weighted prediction losses
  double moe_max_over_mean = 0;  // max / mean load of the experts, in the worst layer
  double moe_dropped_fraction = 0;
  // With --qk-clip or --log-max-attention-logit: the largest attention logit of the step's forwards, and the number of
  // clipped heads. Otherwise unset.
  std::optional<double> max_attention_logit = std::nullopt;
  int64_t clipped_heads = 0;
  // With a loss scale: this step's scale, whether its update was skipped (a gradient overflowed; grad_norm is
  // infinite), and the number of skips so far. Otherwise 0.
  double loss_scale = 0;
  bool skipped = false;
  int64_t skipped_steps = 0;
  double step_wall_ms = 0;
  double tokens_per_s = 0;     // in wall time; tokens without a target are included, because they are computed, too
  double virtual_step_ms = 0;  // on the hardware profile; 0 without virtual time
  double mfu = 0;              // model FLOPs / (virtual time x ranks x peak of the profile)
  double exposed_comm_fraction = 0;  // share of virtual step time, mean over ranks: transfers that compute did not hide
  double wall_mfu = 0;               // on GPUs: model FLOPs / (wall time x GPUs x peak of such a GPU); 0 where unknown
  int64_t peak_memory_bytes = 0;     // peak bytes of rank 0's tensors so far
  double peer_wait_fraction = 0;     // share of virtual step time, mean over ranks: waiting for a later peer
  std::shared_ptr<const SentinelReport> sentinels = nullptr;  // null: off
  std::optional<ZeroCounters> zero = std::nullopt;            // rank 0's, with --zero-debug
};

struct TrainInfo {
  std::string world;    // "8 rank threads, Gloo in process, direct reductions"
  bool on_gpu = false;  // tensors are in GPU memory
  std::string data;
  int64_t parameters = 0;  // total of the whole model
  int64_t first_step = 0;
  std::string loaded = {};  // the checkpoint that the run starts from, with --load
};

// A checkpoint that is complete on disk.
struct CheckpointNote {
  int64_t step = 0;  // steps done
  int64_t bytes = 0;
  double stalled_ms = 0;  // time during which rank 0 did not train
  double written_ms = 0;
};
std::string checkpoint_text(const CheckpointNote& note);  // "checkpoint step 40: 12.3 MiB, stalled ..."

struct TrainResult {
  int64_t steps_done = 0;
  bool interrupted = false;
  std::string stopped = {};  // the message of the sentinel that ended the run; empty: none did
  double first_loss = 0;
  double last_loss = 0;
  double total_wall_s = 0;
  std::string sample;             // generated text, prompt included
  std::vector<RankTrace> traces;  // of all ranks, in the process of rank 0; empty if hooks received them step by step
};

// What all ranks recorded since the previous piece, indexed by rank.
using TracePiece = std::shared_ptr<const std::vector<RankTrace>>;

class Hook {
 public:
  virtual ~Hook() = default;
  virtual void on_train_begin(const RunPlan&, const TrainInfo&) {}
  virtual void on_step_begin(int64_t /*step*/) {}
  virtual void on_step_end(const StepMetrics&) {}
  virtual void on_validation(int64_t /*step*/, double /*loss*/) {}
  virtual void on_checkpoint(const CheckpointNote&) {}
  // Called once with all traces, before on_train_end(); if the engine streams traces, called after each traced step as
  // well.
  virtual void on_traces(const TracePiece&) {}
  virtual void on_train_end(const TrainResult&) {}
};

}  // namespace ranklab
