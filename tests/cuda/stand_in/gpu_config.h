// Small runs on the stand-in's GPUs, a thread for each rank. Thread rule: main thread.
#pragma once
#include <memory>

#include "tests/cuda/stand_in/world.h"
#include "tests/support/model_variants.h"
#include "tests/support/small_config.h"
#include "tests/support/training_record.h"

namespace ranklab::stand_in {

inline RecordOptions on_gpus() {
  return {.make_world = [](int size) { return std::make_unique<ThreadsOverNccl>(size, CudaWorldOptions{}); }};
}

inline TrainConfig gpu_config() {
  TrainConfig config = small_config();
  config.backend = "cuda";
  config.trace = false;
  return config;
}

inline void variant(TrainConfig& c, const char* name) { variant_named(name).change(c.model); }

}  // namespace ranklab::stand_in
