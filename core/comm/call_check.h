// What members of a group must agree on before bytes move: verb, dtype, shape, reduction, root, rows. Backends that see
// both calls (the thread world) compare them here; the text names both sides. Cost: a few integer comparisons per call.
// Thread rule: pure.
#pragma once
#include <optional>
#include <string>

#include "core/comm/call.h"

namespace ranklab {

// "all_reduce(sum) fp32 [2, 3] at train.cpp:12"
std::string describe(const Call& call);
std::string describe(const CallSite& site);

// The first property in which two members of one collective disagree ("dtype"), or nothing. `rank` is the group rank of
// each side. With `same_site`, different call sites count as a disagreement, too.
std::optional<std::string> disagreement(const Call& a, int a_rank, const Call& b, int b_rank, bool same_site = false);

// The same for the two ends of a message.
std::optional<std::string> message_disagreement(const Call& send, const Call& recv);

// Bytes of the call's logical tensor: the full tensor of a collective, the payload of a message.
int64_t logical_bytes(const Call& call);
// The tensor that defines dtype and shape: the input, or the output if there is no input; undefined for a barrier.
const at::Tensor& payload(const Call& call);

}  // namespace ranklab
