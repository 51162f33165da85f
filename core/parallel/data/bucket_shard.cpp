#include "core/parallel/data/bucket_shard.h"

#include "core/base/injected_bug.h"
#include "core/nn/initial_values.h"
#include "core/sim/aten.h"
#include "core/sim/memory_scope.h"
#include "core/sim/op_observer.h"
#include "core/sim/type_watch.h"

namespace ranklab {
namespace {

at::Tensor flat(const Parameter& parameter) { return parameter.data.detach().view({-1}); }

}  // namespace

BucketShard::BucketShard(BucketLayout layout, const std::vector<Parameter*>& parameters, Communicator& group)
    : layout_(std::move(layout)), parameters_(parameters), group_(group) {
  const at::NoGradGuard no_grad;
  for (const ShardPiece& part : pieces_of(layout_, group_.size(), group_.rank())) {
    Piece& piece = *pieces_.emplace_back(std::make_unique<Piece>());
    piece.parameter = *parameters_[part.item];
    if (!piece.parameter.unmade) piece.parameter.data = flat(piece.parameter).narrow(0, part.begin, part.elements());
    piece.offset = part.offset;
    piece.elements = part.elements();
    piece.whole = parameters_[part.item];
    piece.begin = part.begin;
  }
}

std::vector<Parameter*> BucketShard::pieces() const {
  std::vector<Parameter*> result;
  for (const auto& piece : pieces_) result.push_back(&piece->parameter);
  return result;
}

std::pair<const Parameter*, int64_t> BucketShard::origin_of(const Parameter* piece) const {
  for (const auto& own : pieces_) {
    if (&own->parameter == piece) return {own->whole, own->begin};
  }
  return {nullptr, 0};
}

void BucketShard::set_grads(const at::Tensor& shard) {
  const at::NoGradGuard no_grad;
  for (const auto& piece : pieces_) piece->parameter.data.mutable_grad() = piece->in(shard);
}

at::Tensor BucketShard::updated() const {
  at::Tensor shard = at::zeros({elements()}, parameters_[layout_.places[0].item]->data.options().requires_grad(false));
  if (only_shapes(shard)) return shard;  // on shapes there is nothing to copy
  for (const auto& piece : pieces_) {
    const at::Tensor own = piece->in(shard);
    if (piece->whole->unmade) {
      fill_initial(*piece->whole, piece->begin, own);
    } else {
      own.copy_(piece->parameter.data);
    }
  }
  return shard;
}

void BucketShard::start_gather() {
  const at::NoGradGuard no_grad;
  if (shard_.defined()) {  // stage 3
    const MemoryScope memory(MemoryCategory::kGathered);
    gathering_ =
        codec_ ? group_.all_gather_async(codec_->pack(shard_), codec_->rows()) : group_.all_gather_async(shard_);
    return;
  }
  const MemoryScope memory(MemoryCategory::kBuffers);
  at::Tensor shard;
  {
    const NoCostScope no_cost;
    shard = updated();
  }
  gathering_ = group_.all_gather_async(shard);
}

void BucketShard::finish_gather() {
  const at::NoGradGuard no_grad;
  at::Tensor whole = std::exchange(gathering_, nullptr)->wait();
  if (shard_.defined()) return hand_to_parameters(whole);
  copy_to_parameters(std::move(whole));
}

// The copies are not charged: on a GPU the all_gather works in place, with parameters as views of one buffer.
void BucketShard::copy_to_parameters(at::Tensor whole) {
  if (only_shapes(whole)) return;
  const NoCostScope no_cost;
  if (injected(InjectedBug::kStaleGather)) whole = of_last_step(whole);
  for (const BucketPlace& place : layout_.places)
    flat(*parameters_[place.item]).copy_(whole.narrow(0, place.offset, place.elements));
}

void BucketShard::hand_to_parameters(const at::Tensor& gathered) {
  at::Tensor whole = gathered;
  if (codec_) {
    const MemoryScope memory(MemoryCategory::kGathered);
    whole = codec_->unpack(gathered);
  }
  int64_t without_padding = 0;
  for (const BucketPlace& place : layout_.places) {
    const int64_t offset = injected(InjectedBug::kZeroPadding) ? without_padding : place.offset;
    set_part(*parameters_[place.item], whole, offset);
    without_padding += place.elements;
  }
}

// Wrong on purpose: returns the other ranks' shards as they were one step ago (InjectedBug::kStaleGather).
at::Tensor BucketShard::of_last_step(const at::Tensor& whole) {
  const at::Tensor before = std::exchange(late_, whole);
  if (!before.defined()) return whole;
  const int64_t own = group_.rank() * elements();
  at::Tensor mixed = before.clone();
  mixed.narrow(0, own, elements()).copy_(whole.narrow(0, own, elements()));
  return mixed;
}

void BucketShard::keep_shard() {
  const at::NoGradGuard no_grad;
  const NoCostScope no_cost;
  {
    const MemoryScope memory(MemoryCategory::kParameters);
    shard_ = updated();
  }
  for (const auto& piece : pieces_) {
    piece->parameter.data = piece->in(shard_);
    piece->parameter.unmade.reset();
  }
  for (const BucketPlace& place : layout_.places) parameters_[place.item]->unmade.reset();
  free_whole();
}

void BucketShard::gather_in(const GatherPrecision& precision) {
  std::vector<CodedParameter> coded;
  bool any = false;
  for (const BucketPlace& place : layout_.places) {
    const Parameter& parameter = *parameters_[place.item];
    CodedParameter one{.offset = place.offset, .elements = place.elements, .precision = precision(parameter)};
    if (parameter.data.dim() == 2) one.cols = parameter.data.size(1);
    if (parameter.partition.dim == 0) {
      for (const auto& [begin, end] : parameter.partition.ranges) one.row_parts.push_back(end - begin);
    }
    any |= one.precision.quantized();
    coded.push_back(std::move(one));
  }
  if (!any) return;
  codec_ = std::make_unique<ShardCodec>(std::move(coded), layout_.elements, shard_.scalar_type(), group_);
  updated_shard();
}

void BucketShard::updated_shard() {
  const at::NoGradGuard no_grad;
  if (codec_) codec_->agree(shard_);
}

void BucketShard::free_whole() {
  for (const BucketPlace& place : layout_.places) {
    const Parameter& parameter = *parameters_[place.item];
    c10::StorageImpl* storage = parameter.data.storage().unsafeGetStorageImpl();
    storage->set_data_ptr_noswap({nullptr, parameter.data.device()});
    storage->set_nbytes(0);
  }
}

}  // namespace ranklab
