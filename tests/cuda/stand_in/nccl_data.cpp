#include "tests/cuda/stand_in/nccl_data.h"

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <type_traits>

namespace ranklab::stand_in {
namespace {

template <typename T>
T combine(T left, T right, ncclRedOp_t op) {
  if (op == ncclMin) return std::min(left, right);
  if (op == ncclMax) return std::max(left, right);
  return static_cast<T>(left + right);
}

template <typename T>
void reduce_as(const std::vector<const Operation*>& all, size_t count, char* out) {
  const size_t n = all.size();
  const ncclRedOp_t op = all.front()->op;
  // As NCCL: floating-point numbers are scaled before they are added, the sum of integers is divided.
  const bool divides = op == ncclAvg && std::is_integral_v<T>, scales = op == ncclAvg && !divides;
  const double factor = 1.0 / static_cast<double>(n);
  const auto value = [&](size_t member, size_t i) {
    T one;
    std::memcpy(&one, static_cast<const char*>(all[member]->from) + i * sizeof(T), sizeof(T));
    return scales ? static_cast<T>(static_cast<double>(one) * factor) : one;
  };
  // A ring cuts the elements into a part for each member, whose sum begins behind that member and ends at it.
  for (size_t i = 0; i < count; ++i) {
    const size_t end = i * n / count;
    T sum = value((end + 1) % n, i);
    for (size_t step = 2; step <= n; ++step) sum = combine(sum, value((end + step) % n, i), op);
    if (divides) sum = static_cast<T>(static_cast<int64_t>(sum) / static_cast<int64_t>(n));
    std::memcpy(out + i * sizeof(T), &sum, sizeof(T));
  }
}

std::vector<char> reduced(const std::vector<const Operation*>& all, size_t count) {
  const ncclDataType_t type = all.front()->type;
  std::vector<char> out(count * size_of(type));
  switch (type) {
    case ncclInt8:
      reduce_as<int8_t>(all, count, out.data());
      break;
    case ncclUint8:
      reduce_as<uint8_t>(all, count, out.data());
      break;
    case ncclInt32:
      reduce_as<int32_t>(all, count, out.data());
      break;
    case ncclInt64:
      reduce_as<int64_t>(all, count, out.data());
      break;
    case ncclFloat16:
      reduce_as<c10::Half>(all, count, out.data());
      break;
    case ncclBfloat16:
      reduce_as<c10::BFloat16>(all, count, out.data());
      break;
    case ncclFloat32:
      reduce_as<float>(all, count, out.data());
      break;
    case ncclFloat64:
      reduce_as<double>(all, count, out.data());
      break;
    default:
      throw std::logic_error("the stand-in adds no elements of this type");
  }
  return out;
}

}  // namespace

size_t size_of(ncclDataType_t type) {
  switch (type) {
    case ncclInt32:
    case ncclUint32:
    case ncclFloat32:
      return 4;
    case ncclInt64:
    case ncclUint64:
    case ncclFloat64:
      return 8;
    case ncclFloat16:
    case ncclBfloat16:
      return 2;
    default:
      return 1;
  }
}

size_t Operation::bytes() const { return count * size_of(type); }

void perform(const std::vector<const Operation*>& all) {
  const Operation& first = *all.front();
  const size_t bytes = first.bytes(), n = all.size();
  const auto root = static_cast<size_t>(first.peer);
  std::vector<char> result;
  switch (first.kind) {
    case Kind::kReduce:
      result = reduced(all, first.count);
      std::memcpy(all[root]->to, result.data(), bytes);
      return;
    case Kind::kReduceScatter:
      result = reduced(all, first.count * n);
      for (size_t member = 0; member < n; ++member) std::memcpy(all[member]->to, result.data() + member * bytes, bytes);
      return;
    case Kind::kAllReduce:
      result = reduced(all, first.count);
      break;
    case Kind::kBroadcast:
      result.resize(bytes);
      std::memcpy(result.data(), all[root]->from, bytes);
      break;
    case Kind::kAllGather:
      result.resize(n * bytes);
      for (size_t member = 0; member < n; ++member)
        std::memcpy(result.data() + member * bytes, all[member]->from, bytes);
      break;
    case Kind::kSend:
    case Kind::kRecv:
      throw std::logic_error("a message is no collective");
  }
  for (const Operation* member : all) std::memcpy(member->to, result.data(), result.size());
}

}  // namespace ranklab::stand_in
