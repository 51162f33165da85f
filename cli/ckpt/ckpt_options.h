// Parsers of options that several subcommands of `ranklab ckpt` share. Thread rule: pure functions.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "core/checkpoint/tensor_type.h"

namespace ranklab {

// Accepts "fp32", "fp64", "bf16" and "fp16"; returns nothing for "". Throws kInvalidArgument.
std::optional<TensorType> parse_tensor_type(const std::string& text);
std::string short_name(TensorType type);

// Accepts "5GB" (10^9, as in transformers), "512MiB" and "1000". Throws kInvalidArgument.
uint64_t parse_bytes(const std::string& flag, const std::string& text);

}  // namespace ranklab
