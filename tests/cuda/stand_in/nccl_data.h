// What the stand-in's calls do to bytes. A sum runs through the members one by one and rounds to the tensors' type at
// each step; where it begins depends on the element's place among the others, as in a ring: not the canonical order of
// our own reductions. Thread rule: pure functions.
#pragma once
#include <nccl.h>

#include <cstddef>
#include <vector>

namespace ranklab::stand_in {

enum class Kind { kAllReduce, kReduceScatter, kReduce, kAllGather, kBroadcast, kSend, kRecv };

struct Operation {
  Kind kind = Kind::kSend;
  const void* from = nullptr;
  void* to = nullptr;
  size_t count = 0;  // of elements, as the function's parameter of that name
  ncclDataType_t type = ncclInt8;
  ncclRedOp_t op = ncclSum;
  int peer = 0;  // or root

  bool is_message() const { return kind == Kind::kSend || kind == Kind::kRecv; }
  size_t bytes() const;
  // Whether members that make these two calls make the same one.
  bool matches(const Operation& other) const {
    return kind == other.kind && count == other.count && type == other.type && op == other.op && peer == other.peer;
  }
};

size_t size_of(ncclDataType_t type);
// `all`: the members' calls, by rank. REQUIRES: they match.
void perform(const std::vector<const Operation*>& all);

}  // namespace ranklab::stand_in
