// A small checkpoint of two ranks for tests, and what is wrong with one.
#pragma once
#include <cstring>
#include <string>
#include <vector>

#include "core/checkpoint/checkpoint.h"
#include "core/checkpoint/checkpoint_writer.h"
#include "core/checkpoint/run_folder.h"
#include "tests/checkpoint/tensor_files.h"

namespace ranklab::checkpoint_samples {

inline std::vector<float> values_from(float first, size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = first + static_cast<float>(i);
  return values;
}

// "weight/w" [4, 3] cut into rows 0-1 and 2-3, "weight/b" [2] of rank 0, "exp_avg/w" cut into columns {0, 2} and {1},
// with padding. All values follow from `first`.
inline CheckpointManifest write_two_ranks(CheckpointWriter& writer, int64_t step, float first) {
  CheckpointManifest whole{.step = step, .updates = step, .consumed_samples = 8 * step, .config = {{"k", "v"}}};
  whole.layout = {{"world", 2}, {"tp", 2}};
  writer.begin();
  for (int rank = 0; rank < 2; ++rank) {
    const std::vector<float> rows = values_from(first + 6 * static_cast<float>(rank), 6);
    const std::vector<float> bias = {first, -first};
    const std::vector<float> columns =
        rank == 0 ? std::vector<float>{0, 2, 3, 5, 6, 8, 9, 11} : std::vector<float>{1, 99, 4, 99, 7, 99, 10, 99};
    const auto bytes = [](const std::vector<float>& values) { return std::as_bytes(std::span(values)); };
    std::vector<PieceToWrite> pieces;
    pieces.push_back({.tensor = "weight/w",
                      .shape = {4, 3},
                      .slice = {.partition = {.dim = 0, .ranges = {{2 * rank, 2 * rank + 2}}}, .end = 6},
                      .bytes = bytes(rows)});
    const std::vector<std::pair<int64_t, int64_t>> cuts[] = {{{0, 1}, {2, 3}}, {{1, 2}, {3, 4}}};
    pieces.push_back({.tensor = "exp_avg/w",
                      .shape = {4, 3},
                      .slice = {.partition = {.dim = 1, .ranges = cuts[rank]}, .end = 8},
                      .bytes = bytes(columns)});
    if (rank == 0) pieces.push_back({.tensor = "weight/b", .shape = {2}, .slice = {.end = 2}, .bytes = bytes(bias)});
    merge_part(whole, writer.write_file(rank, pieces), "test");
  }
  return whole;
}

inline std::string save_two_ranks(const std::string& run_folder, int64_t step, float first,
                                  FileCalls& calls = system_file_calls()) {
  CheckpointWriter writer(run_folder, step, "test", calls);
  try {
    CheckpointManifest whole = write_two_ranks(writer, step, first);
    writer.write_tokenizer("{\"model\": 1}\n", whole);
    writer.publish(whole);
  } catch (...) {
    writer.discard();
    throw;
  }
  return writer.published_folder();
}

inline std::vector<float> read_floats(const Checkpoint& checkpoint, const std::string& name) {
  const std::vector<std::byte> bytes = checkpoint.read(name);
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// What opening and verifying says; "" when the checkpoint is sound. Any other error than these kinds fails the test.
inline std::string checkpoint_refusal(const std::string& folder) {
  try {
    const Checkpoint checkpoint(folder);
    checkpoint.verify();
    return {};
  } catch (const Error& error) {
    EXPECT_TRUE(error.kind() == ErrorKind::kBadFile || error.kind() == ErrorKind::kIo) << error.what();
    return error.what();
  }
}

}  // namespace ranklab::checkpoint_samples
