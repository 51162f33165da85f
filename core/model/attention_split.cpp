#include "core/model/attention_split.h"

#include "core/base/injected_bug.h"
#include "core/sim/aten.h"
#include "core/sim/op_observer.h"

namespace ranklab {

at::Tensor padded_positions(const at::Tensor& position_BS, int64_t rows) {
  const int64_t missing = rows - position_BS.size(1);
  return missing > 0 ? at::constant_pad_nd(position_BS, {0, missing}) : position_BS;
}

namespace {

std::shared_ptr<const ScoreDropout> dropout_of(const ForwardContext& context, const ContextParallel& exchange,
                                               const AttentionHeads& heads) {
  // Ranks that exchange heads for positions then have an equal part of them each, in order.
  const int64_t first = heads.first + exchange.rank() * (heads.own / exchange.size());
  return std::make_shared<const ScoreDropout>(ScoreDropout{.p = context.attention_dropout,
                                                           .seed = context.seed,
                                                           .layer_name = heads.layer_name + ".dropout",
                                                           .step = static_cast<uint64_t>(context.tokens.step),
                                                           .first_sample = context.tokens.first_sample,
                                                           .first_head = first,
                                                           .heads = heads.all,
                                                           .seq_length = context.tokens.seq_length,
                                                           .offset = context.batch.random_offset});
}

}  // namespace

AttentionSplit attention_split(const ForwardContext& context, const ContextParallel& of_layer, const ScoreRule& scores,
                               const RopeTable& table, int64_t rows, const AttentionHeads& heads) {
  const SequencePart* part = context.part.get();
  const Documents* documents = context.batch.documents.get();
  const ContextParallel cp = part != nullptr ? of_layer : ContextParallel{};
  AttentionSplit split{.heads = cp.head_group(), .keys = cp.key_group(), .rule = {.scores = scores}, .rope = {}};
  if (scores.sinks.defined() && split.heads.active()) {
    const int64_t after = heads.own / split.heads.size();
    split.rule.scores.sinks = scores.sinks.narrow(0, split.heads.rank() * after, after);
  }
  if (documents != nullptr && documents->separate)
    split.rule.documents = {context.batch.documents, &documents->starts};  // shares the ownership of the batch
  if (context.attention_dropout > 0) split.rule.dropout = dropout_of(context, split.heads, heads);
  const NoCostScope views;
  split.rope = rope_for(table, part != nullptr ? part->seq_length : rows);
  if (injected(InjectedBug::kRopeLocalPositions) && split.keys.active()) {
    split.rope = rope_for(table, rows);
    return split;
  }
  at::Tensor index;  // undefined: all positions, in order
  if (split.keys.active()) index = split.heads.active() ? part->exchanged : part->index;
  if (documents != nullptr && documents->position_BS.defined()) {
    const at::Tensor all = padded_positions(documents->position_BS, part != nullptr ? part->seq_length : rows);
    index = index.defined() ? all.index_select(1, index) : all;
  }
  if (index.defined()) split.rope = rope_at(split.rope, index);
  return split;
}

}  // namespace ranklab
