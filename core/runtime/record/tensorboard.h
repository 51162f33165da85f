// Writes a run's scalars as a TensorBoard event file (`tensorboard --logdir DIR`), in groups: loss/, grad/, optim/,
// speed/, memory/, experts/; histograms (core/runtime/sentinels); and its settings once, as a table under the text tag
// "settings". Source: the TFRecord framing (u64 length, its masked crc32c, bytes, their masked crc32c; little-endian)
// around tensorflow.Event protobufs (wall_time 1, step 2, file_version 3, summary 5 {value 1 {tag 1, simple_value 2 |
// histo 5 | tensor 8, metadata 9}}, session_log 7 {status 1}), encoded by hand: a few fields need no protobuf library.
// Cost: some 300 bytes per step, one write each, flushed, so a crash keeps what was done. Thread rule: the functions
// are pure; the hook runs on global rank 0's thread.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "core/runtime/hooks.h"

namespace ranklab {

// CRC-32C (Castagnoli, reflected 0x82f63b78).
uint32_t crc32c(std::string_view bytes);
// Checksums of data that itself contains checksums are weak; TFRecord therefore rotates by 15 and adds a constant.
uint32_t masked_crc32c(std::string_view bytes);

struct ValueHistogram;

struct TensorboardScalar {
  std::string_view tag;
  double value = 0;  // stored as float
};

// Each returns one framed record.
std::string tensorboard_version_record(double wall_time);
// Marks that a run starts at `first_step`: earlier files' values for this step and later ones are no longer shown, so
// that a run resumed from a checkpoint draws no step twice.
std::string tensorboard_start_record(double wall_time, int64_t first_step);
std::string tensorboard_scalar_record(double wall_time, int64_t step, std::span<const TensorboardScalar> scalars);

// The bins from the first with elements to the last, preceded by one empty bin: HistogramProto {min 1, max 2, num 3,
// sum 4, sum_squares 5, bucket_limit 6 and bucket 7 packed, all doubles} in field 5 of a value.
std::string tensorboard_histogram_record(double wall_time, int64_t step, std::span<const ValueHistogram> histograms);

// Markdown under a tag of the plugin "text": tensor {dtype 1: DT_STRING, shape 2 {dim 2 {size 1}}, string_val 8},
// metadata {plugin_data 1 {plugin_name 1}}.
std::string tensorboard_text_record(double wall_time, std::string_view tag, std::string_view markdown);

// Creates the folder now and a new event file when training begins. Throws kIo naming the path.
std::shared_ptr<Hook> make_tensorboard_hook(const std::string& directory);

}  // namespace ranklab
