// The position of every gradient in the flat buckets that data-parallel ranks reduce, and the part of a sharded bucket
// that each rank owns (ZeRO, Rajbhandari et al. 2020, arXiv 1910.02054; flat buckets as in Megatron-LM's distributed
// optimizer). Buckets are filled in reverse creation order, roughly the order in which backward produces gradients;
// buckets that are summed over tp come last.
//
// A sharded bucket is padded so that it splits into equal shards of whole cache lines, and each gradient starts on a
// cache line: a piece of a parameter then starts at a SIMD vector boundary of the whole parameter, so that the
// optimizer's kernels give the same bits for pieces as for whole parameters. Parameters that several pipeline ranks
// hold have separate buckets, ordered by name: all holders shard them identically.
//
// Matrices that an optimizer updates as a whole (Muon) have separate buckets. If no shard may end within a matrix
// (Megatron-LM's layer-wise distributed optimizer), a bucket holds, per shard, at least kWholesPerShard times the size
// of its largest matrix; matrices are assigned, the largest first, to the emptiest shard, and shards are padded to the
// length of the fullest. Torch-free. Cost: a few additions per parameter. Thread rule: pure.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/dtype.h"

namespace ranklab {

constexpr int64_t kBucketLineElements = 16;  // 64 bytes of fp32
constexpr int64_t kWholesPerShard = 4;       // so that at most about a quarter of a bucket is padding

// How parameters that an optimizer updates as whole matrices lie in buckets.
enum class MatrixBuckets {
  kMixed,  // like all others, for an optimizer that updates elements
  kApart,  // in separate buckets
  kWhole,  // in separate buckets, where no shard ends within a matrix
};

// A parameter as the layout sees it.
struct BucketItem {
  std::string name;
  int64_t elements = 0;
  DType dtype = DType::kFloat32;
  bool sum_over_tp = false;
  std::vector<int> pipeline_ranks = {};  // the ranks that hold a copy, if there are several
  // ZeRO stage 3: the unit that is gathered and freed together, in separate buckets of any size; "": not gathered.
  std::string unit = {};
  MatrixBuckets matrix = MatrixBuckets::kMixed;  // also kMixed for parameters that are not matrices
};

struct BucketPlace {
  size_t item = 0;
  int64_t offset = 0;  // elements
  int64_t elements = 0;
};

struct BucketLayout {
  std::vector<BucketPlace> places;
  int64_t elements = 0;  // with padding
  int64_t element_bytes = 4;
  bool sum_over_tp = false;
  std::string unit = {};
  MatrixBuckets matrix = MatrixBuckets::kMixed;

  int64_t bytes() const { return elements * element_bytes; }
  int64_t padding() const;  // elements
};

// `shards`: the number of ranks over which each bucket is sharded; 1: not sharded.
std::vector<BucketLayout> lay_out_buckets(const std::vector<BucketItem>& items, int64_t bucket_bytes, int shards);

// The part of one parameter that a rank owns: elements [begin, end), at `offset` in the rank's shard.
struct ShardPiece {
  size_t item = 0;
  int64_t begin = 0, end = 0;
  int64_t offset = 0;
  int64_t elements() const { return end - begin; }
};
std::vector<ShardPiece> pieces_of(const BucketLayout& bucket, int shards, int shard);

}  // namespace ranklab
