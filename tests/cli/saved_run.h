// Models that a run trained for a step and saved, for tests of the commands that read them.
#pragma once
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/cli/run_program.h"

namespace ranklab::saved_runs {

inline constexpr const char* kDense =
    "--num-layers 3 --hidden-size 32 --ffn-hidden-size 48 --num-attention-heads 4 --num-query-groups 2 --seq-length 32 "
    "--vocab-size 258 --tie-embeddings --ddp-bucket-bytes 9000";
inline constexpr const char* kExperts =
    "--preset deepseek_v3_tiny --num-layers 4 --hidden-size 32 --ffn-hidden-size 48 --num-attention-heads 4 "
    "--seq-length 32 --vocab-size 258 --ddp-bucket-bytes 9000";

// RETURNS: what the program printed; it ends well.
inline std::string shell(const std::string& arguments) {
  const Outcome outcome = run_command(RANKLAB_PROGRAM " " + arguments + " 2>&1");
  EXPECT_EQ(outcome.exit_code, 0) << arguments << "\n" << outcome.output;
  return outcome.output;
}

// One step of training, saved.
inline std::string saved(const std::string& model, const std::string& layout, const std::string& name) {
  const std::string folder = temporary_path("ranklab_write_" + name);
  shell("train " + model + " " + layout +
        " --train-iters 1 --global-batch-size 16 --mock-data --eval-interval 0 --sample-tokens 0 --no-trace "
        "--log-dir " +
        folder + "_log --save " + folder);
  std::filesystem::remove_all(folder + "_log");
  return folder;
}

}  // namespace ranklab::saved_runs
