// The words that events, costs and communicators share: mesh axes, collective verbs, reductions, memory categories.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>

namespace ranklab {

// Mesh axes. kDpCp is the product axis over which dense gradients are reduced; it is used where cp is larger than one,
// and kDp elsewhere. Expert layers see ep, etp and edp, a second factorization of the same ranks (DeviceMesh). HSDP
// splits the ranks over which gradients are reduced once more: a dp-shard group holds neighbours that together shard
// all states, and a dp-replica group holds the ranks at the same position of each dp-shard group. kKv: neighbours on tp
// whose query heads read the same key/value head (core/parallel/tensor/shared_heads.h). kCpHeads and kCpRing split cp
// once more: groups of neighbours that exchange heads for positions, and the ring formed of those groups.
enum class Axis : uint8_t {
  kWorld,
  kTp,
  kCp,
  kDp,
  kPp,
  kEp,
  kEtp,
  kEdp,
  kDpCp,
  kDpShard,
  kDpReplica,
  kEdpShard,
  kEdpReplica,
  kKv,
  kCpHeads,
  kCpRing,
  kCount
};

enum class Verb : uint8_t {
  kAllReduce,
  kReduceScatter,
  kAllGather,
  kAllToAll,
  kBroadcast,
  kSend,
  kRecv,
  kBarrier,
  kCount
};

// What a collective is used for, where the verb alone does not tell. MoE: routing, dispatching tokens to their experts,
// combining the results, and the gradients of both. Context parallelism: keys and values, their gradients, and the
// exchange of heads for positions.
enum class Purpose : uint8_t {
  kOther,
  kRouting,
  kDispatch,
  kCombine,
  kDispatchGrad,
  kCombineGrad,
  kKeyValue,
  kKeyValueGrad,
  kHeads,
  kCount
};

enum class ReduceOp : uint8_t { kSum, kAvg, kMin, kMax };

// Every byte that a rank has allocated belongs to one of these.
enum class MemoryCategory : uint8_t { kParameters, kGradients, kOptimizer, kActivations, kGathered, kBuffers, kCount };

constexpr std::string_view name(Axis axis) {
  constexpr std::array<std::string_view, 16> kNames = {
      "world", "tp",       "cp",         "dp",        "pp",          "ep", "etp",    "edp",
      "dp-cp", "dp-shard", "dp-replica", "edp-shard", "edp-replica", "kv", "cp-a2a", "cp-p2p"};
  return kNames[static_cast<size_t>(axis)];
}
constexpr std::string_view name(Verb verb) {
  constexpr std::array<std::string_view, 8> kNames = {"all_reduce", "reduce_scatter", "all_gather", "all_to_all",
                                                      "broadcast",  "send",           "recv",       "barrier"};
  return kNames[static_cast<size_t>(verb)];
}
constexpr std::string_view name(Purpose purpose) {
  constexpr std::array<std::string_view, 9> kNames = {"other",        "routing", "dispatch", "combine", "dispatch_grad",
                                                      "combine_grad", "kv",      "dkv",      "heads"};
  return kNames[static_cast<size_t>(purpose)];
}
constexpr std::string_view name(ReduceOp op) {
  constexpr std::array<std::string_view, 4> kNames = {"sum", "avg", "min", "max"};
  return kNames[static_cast<size_t>(op)];
}
constexpr std::string_view name(MemoryCategory category) {
  constexpr std::array<std::string_view, 6> kNames = {"parameters",  "gradients", "optimizer",
                                                      "activations", "gathered",  "buffers"};
  return kNames[static_cast<size_t>(category)];
}

}  // namespace ranklab
