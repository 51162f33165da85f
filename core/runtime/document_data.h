// Marks the documents in the batches of any data: they end with a token (Megatron-LM's --reset-attention-mask,
// --reset-position-ids and --eod-mask-loss). A token that follows the end of a document begins the next one; the end
// itself belongs to its document, and what is to follow it has no loss. Cost: the tokens of each microbatch are read on
// the host once. Thread rule: as the data.
#pragma once
#include <memory>

#include "core/config/train_config.h"
#include "core/runtime/components.h"

namespace ranklab {

// `data` itself where no setting asks for documents.
std::unique_ptr<RankData> with_documents(std::unique_ptr<RankData> data, const DocumentSettings& settings);

// The documents of tokens [B, S] as `settings` wants them: null if only losses are masked.
std::shared_ptr<const Documents> documents_of(const at::Tensor& tokens_BS, const DocumentSettings& settings);

}  // namespace ranklab
