// Converts core's requests to a device's kernels (core/nn/kernels/device_kernels.h) into kernel arguments, with element
// types as C++ types. Thread rule: pure functions.
#pragma once
#include <utility>
#include <vector>

#include "backends/cuda/kernels/lists_body.h"
#include "backends/cuda/kernels/loss_body.h"
#include "backends/cuda/kernels/merge_body.h"
#include "backends/cuda/kernels/norm_body.h"
#include "backends/cuda/kernels/qkv_body.h"
#include "backends/cuda/kernels/sum_body.h"
#include "backends/cuda/kernels/swiglu_body.h"
#include "core/nn/kernels/device_kernels.h"

namespace ranklab::rows {

static_assert(kNormParts == kDeviceGradParts && kChunk == kDeviceSquaresChunk);
static_assert(static_cast<int>(Kind::kFp64) == static_cast<int>(DeviceNumber::kFp64) &&
              static_cast<int>(Kind::kBf16) == static_cast<int>(DeviceNumber::kBf16) &&
              static_cast<int>(Kind::kFp16) == static_cast<int>(DeviceNumber::kFp16));

// Calls f.template operator()<T>() with the C++ type of this element type.
template <typename F>
void for_number(DeviceNumber number, const F& f) {
  switch (number) {
    case DeviceNumber::kFp32:
      return f.template operator()<float>();
    case DeviceNumber::kFp64:
      return f.template operator()<double>();
    case DeviceNumber::kBf16:
      return f.template operator()<Bf16>();
    case DeviceNumber::kFp16:
      return f.template operator()<Fp16>();
  }
}

// The same for 16-bit types. REQUIRES: `number` is one.
template <typename F>
void for_narrow_number(DeviceNumber number, const F& f) {
  if (number == DeviceNumber::kBf16) return f.template operator()<Bf16>();
  f.template operator()<Fp16>();
}

template <typename T>
const T* in(const void* address) {
  return static_cast<const T*>(address);
}
template <typename T>
T* out(void* address) {
  return static_cast<T*>(address);
}
// Advances by `count` elements; null stays null.
template <typename T>
const T* from(const void* address, int64_t count) {
  return address == nullptr ? nullptr : in<T>(address) + count;
}

template <typename T>
NormTask<T> norm_task(const DeviceNorm& n) {
  return {plain_rows(n.shape.rows, n.shape.cols),
          n.epsilon,
          n.weight_offset,
          in<T>(n.x),
          in<T>(n.branch),
          {in<T>(n.weight), in<T>(n.weight)},
          out<T>(n.sum),
          out<T>(n.out),
          out<Wide<T>>(n.inv_rms)};
}

template <typename T>
NormGradTask<T> norm_grad_task(const DeviceNormGrad& n) {
  return {plain_rows(n.shape.rows, n.shape.cols),
          n.weight_offset,
          in<T>(n.grad_out),
          in<T>(n.grad_sum),
          in<T>(n.sum),
          in<T>(n.weight),
          in<Wide<T>>(n.inv_rms),
          1,
          out<T>(n.grad_in),
          out<T>(n.grad_weight),
          out<Wide<T>>(n.parts)};
}

// A task that normalizes the rows of queries and keys; values are copied separately.
template <typename T>
NormTask<T> head_norm_task(const DeviceHeadNorm& n) {
  const kernels::HeadNormShape& s = n.shape;
  const int64_t normed = s.heads + s.groups;
  return {{s.tokens * normed, s.head_dim, normed, (s.heads + 2 * s.groups) * s.head_dim, s.heads},
          s.epsilon,
          s.weight_offset,
          in<T>(n.qkv),
          nullptr,
          {in<T>(n.q_weight), in<T>(n.k_weight)},
          nullptr,
          out<T>(n.out),
          out<Wide<T>>(n.inv_rms)};
}

// Queries only, or keys only.
template <typename T>
NormGradTask<T> head_norm_grad_task(const DeviceHeadNorm& n, bool keys) {
  const kernels::HeadNormShape& s = n.shape;
  const int64_t rows = keys ? s.groups : s.heads, skip = keys ? s.heads : 0, at = skip * s.head_dim;
  return {{s.tokens * rows, s.head_dim, rows, (s.heads + 2 * s.groups) * s.head_dim, rows},
          s.weight_offset,
          from<T>(n.grad_out, at),
          nullptr,
          from<T>(n.qkv, at),
          in<T>(keys ? n.k_weight : n.q_weight),
          from<Wide<T>>(n.inv_rms, skip),
          s.heads + s.groups,
          out<T>(n.grad_qkv) + at,
          out<T>(keys ? n.grad_k_weight : n.grad_q_weight),
          out<Wide<T>>(n.parts)};
}

template <typename T>
SwigluTask<T> swiglu_task(const DeviceSwiglu& n) {
  return {n.shape.rows, n.shape.cols, in<T>(n.gate_up), in<T>(n.grad_out), out<T>(n.out), out<T>(n.grad_gate_up)};
}

inline HeadPlaces places(const kernels::HeadStrides& s) { return {s.batch, s.head, s.seq}; }

template <typename T>
QkvTask<T> qkv_task(const DeviceQkv& n) {
  return {n.shape.seq,          n.shape.batch,       n.shape.heads,       n.shape.groups,      n.shape.head_dim,
          n.shape.table_stride, places(n.strides.q), places(n.strides.k), places(n.strides.v), in<Wide<T>>(n.cos),
          in<Wide<T>>(n.sin),   out<T>(n.qkv),       out<T>(n.q),         out<T>(n.k),         out<T>(n.v)};
}

template <typename T>
MergeTask<T> merge_task(const DeviceMerge& n) {
  const auto& [out_strides, sum_strides, part_strides, part_sum_strides] = n.strides;
  return {n.shape.batch,        n.shape.heads,
          n.shape.rows,         n.shape.head_dim,
          places(out_strides),  places(sum_strides),
          places(part_strides), places(part_sum_strides),
          in<T>(n.part),        in<Wide<T>>(n.part_log_sum_exp),
          out<Wide<T>>(n.out),  out<Wide<T>>(n.log_sum_exp)};
}

template <typename T>
LossTask<T> loss_task(const DeviceLoss& n) {
  return {n.rows,
          n.width,
          n.real,
          n.begin,
          in<T>(n.logits),
          n.targets,
          out<Wide<T>>(n.statistics),
          in<Wide<T>>(n.maximum),
          in<Wide<T>>(n.factor),
          in<Wide<T>>(n.grad_loss),
          out<T>(n.grad)};
}

template <typename... Pointers>
bool in_packs(const Pointers*... pointers) {
  return ((reinterpret_cast<uintptr_t>(pointers) % 16 == 0) && ...);
}

template <typename T>
SumTask<T> sum_task(const DeviceSum& n) {
  return {in<T>(n.x), out<float>(n.sum), n.count, n.first};
}

inline std::vector<SquaresTensor> squares_list(const std::vector<DeviceArray>& arrays) {
  std::vector<SquaresTensor> list;
  for (const DeviceArray& a : arrays) list.push_back({a.numbers, a.count, in_packs(a.numbers)});
  return list;
}

inline std::vector<AdamTensor> adam_list(const std::vector<DeviceAdamTensor>& tensors) {
  std::vector<AdamTensor> list;
  for (const DeviceAdamTensor& t : tensors) {
    list.push_back({t.weight, t.exp_avg, t.exp_avg_sq, t.grad, t.copy, t.count,
                    in_packs(t.weight, t.exp_avg, t.exp_avg_sq, t.grad, t.copy)});
  }
  return list;
}
inline AdamKinds adam_kinds(const DeviceAdam& n) {
  const auto kind = [](DeviceNumber number) { return static_cast<Kind>(number); };
  return {kind(n.weight), kind(n.exp_avg), kind(n.exp_avg_sq), kind(n.grad), kind(n.copy)};
}
inline AdamRule adam_rule(const DeviceAdam& n) {
  const auto step = static_cast<double>(n.step);
  return {n.beta1,
          n.beta2,
          n.epsilon,
          n.factor,
          1 - n.lr * n.weight_decay,
          n.lr / (1 - std::pow(n.beta1, step)),
          1 / std::sqrt(1 - std::pow(n.beta2, step))};
}

}  // namespace ranklab::rows
