// The kind of work that an operator does, determined once per operator from its schema and a short table of names.
// Rule: leaves cost, composites do not. An operator with its own kernel (a CPU kernel, a GEMM, attention, foreach and
// fused ops) is "closed": it counts as one GPU kernel, and what it dispatches inside is free. An operator that only has
// a CompositeImplicitAutograd kernel never costs; its parts do. Anything between these (clone, mul by a scalar) costs
// when none of its parts did, which is known only at run time. Views and allocations are free. Cost: one schema lookup
// the first time an operator is seen. Thread rule: classify() is pure.
#pragma once
#include <cstdint>
#include <string>

namespace ranklab {

enum class OpKind : uint8_t {
  kFree,                 // views, allocations, metadata, host reads
  kComposite,            // its parts are observed and charged
  kBytes,                // memory-bound: reads its inputs, writes its outputs
  kGather,               // reads as much as it returns: embedding, index_select
  kScatter,              // reads and rewrites the addressed part: index_add
  kMatmul,               // 2 x A elements x columns of B
  kAttention,            // fused softmax(q k^T) v, forward
  kAttentionBackward,    // five GEMMs, one of them recomputed
  kConvolution,          // 2 x output elements x weights per output element
  kConvolutionBackward,  // one such convolution per requested gradient
  kFusedAdamW,           // one pass over weight, gradient and two moments
};

struct OpClass {
  OpKind kind = OpKind::kBytes;
  bool closed = false;
  bool copies = false;      // copy_: copies its second argument into its first, possibly between devices
  uint64_t read_args = 0;   // bit i: tensor(s) in argument i are read
  uint64_t write_args = 0;  // bit i: tensor(s) in argument i are written
  int8_t first = -1;        // matmul A, attention query, convolution grad_output or input
  int8_t second = -1;       // matmul B, attention key, convolution input
  int8_t third = -1;        // attention value, convolution weight
  int8_t flag = -1;         // is_causal, transposed
  int8_t mask = -1;         // output_mask
};

// `name` is qualified ("aten::mm"). An operator without a schema is kComposite.
OpClass classify(const std::string& name, const std::string& overload);

}  // namespace ranklab
