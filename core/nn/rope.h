// Rotary position embedding (Su et al. 2021, arXiv 2104.09864) in the halves convention of GPT-NeoX and Llama: the pair
// (x[i], x[i + D/2]) is rotated by position * theta^(-2i/D). With partial rotary (GPT-NeoX) only the first pairs are
// rotated, by the frequencies of a head that has only these pairs; the others have cosine 1 and sine 0. Tables are made
// once per model, in fp64, then rounded. Thread rule: tables are immutable.
#pragma once
#include <ATen/core/Tensor.h>

#include <memory>

namespace ranklab {

class RopeLengths;

struct RopeTable {
  at::Tensor cos_SD;  // [S, D/2]; undefined: no rotation
  at::Tensor sin_SD;
  std::shared_ptr<RopeLengths> lengths = {};  // null: the angles do not depend on the sequence length
  bool defined() const { return cos_SD.defined(); }
};

// One table per sequence length, where the frequencies depend on that length. Thread rule: its rank's thread.
class RopeLengths {
 public:
  virtual ~RopeLengths() = default;
  virtual RopeTable of(int64_t seq_length) = 0;
};

// The table for sequences of `seq_length`, which is at most the longest length; `table` itself unless the angles depend
// on the length.
RopeTable rope_for(const RopeTable& table, int64_t seq_length);

// The table's rows at some positions, int64: [S'], or [B, S'] for positions that differ between the sequences of a
// batch. In the latter case the result is [B, 1, S', D/2], which only apply_rope() and rotated_heads() accept.
RopeTable rope_at(const RopeTable& table, const at::Tensor& positions);

// theta^(-2i/D): [D/2] in fp64. REQUIRES: head_dim even.
at::Tensor rope_frequencies(int64_t head_dim, double theta);
// Which elements of a head are rotated, and by which base.
struct RopeShape {
  int64_t rotary_dim = 0;     // elements of a head that are rotated
  int64_t unrotated_dim = 0;  // elements of a head that are not rotated
  double theta = 10000.0;
};
// Makes a table from frequencies [rotary_dim / 2]; the cosines and sines of these pairs are multiplied by `scale`.
RopeTable make_rope_table(int64_t seq_length, const at::Tensor& frequencies, int64_t unrotated_dim, double scale,
                          const at::TensorOptions& options);
// REQUIRES: head_dim even.
RopeTable make_rope_table(int64_t seq_length, int64_t head_dim, double theta, const at::TensorOptions& options);
// x [..., S, D], with S at most the table's length: rotated by positions 0 to S-1. With an undefined table, returns x
// unchanged. Plain ATen ops.
at::Tensor apply_rope(const at::Tensor& x, const RopeTable& table);

}  // namespace ranklab
