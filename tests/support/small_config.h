// A run with a model so small that a test can train it in many layouts.
#pragma once
#include "core/config/one_rank.h"
#include "core/config/train_config.h"

namespace ranklab {

// One rank, 4 layers of hidden size 32, fp64, AdamW, no clipping, two steps of 8 sequences of 16 tokens.
inline TrainConfig small_config() {
  TrainConfig c;
  c.model.num_layers = 4;
  c.model.hidden_size = 32;
  c.model.ffn_hidden_size = 48;
  c.model.num_attention_heads = 4;
  c.model.seq_length = 16;
  c.model.init_std = 0.1;
  c.parallel = {.world = 1, .tp = 1, .pp = 1};
  c.params_dtype = "fp64";
  c.global_batch_size = 8;
  c.train_iters = 2;
  c.lr_warmup_iters = 0;
  c.lr = 1e-3;
  c.clip_grad = 0;  // the norm's last bits depend on the order in which ranks are added
  // AdamW's first update is g / (|g| + epsilon). If a gradient is zero except for rounding (that of a key bias, which
  // softmax ignores), a tiny epsilon would turn the rounding error into a whole step; gradients themselves are compared
  // anyway.
  c.adam_eps = 1e-6;
  c.mock_data = true;
  c.eval_interval = 0;
  c.sample_tokens = 0;
  c.ddp_bucket_bytes = 8192;  // several buckets
  return c;
}

// The same run without a pipeline, with the same number of data- and tensor-parallel ranks.
inline TrainConfig without_pipeline(TrainConfig c) {
  c.parallel.world /= c.parallel.pp;
  c.parallel.pp = 1;
  c.virtual_stages = 1;
  c.pipeline_schedule = "1f1b";
  c.pipeline_layout.clear();
  return c;
}

inline TrainConfig with_pipeline(TrainConfig c, const std::string& schedule, int pp, int64_t vpp = 1) {
  c.parallel.world *= pp;
  c.parallel.pp = pp;
  c.pipeline_schedule = schedule;
  c.virtual_stages = vpp;
  return c;
}

}  // namespace ranklab
