// Marks the documents in batches of any data, using the token that ends a document (Megatron-LM's
// --reset-attention-mask, --reset-position-ids and --eod-mask-loss). The token after an end begins the next document;
// the end itself belongs to its own document, and predicting what follows it has no loss. Cost: the tokens of each
// microbatch are read on the host once. Thread rule: as for the data.
#pragma once
#include <memory>

#include "core/config/train_config.h"
#include "core/runtime/components.h"

namespace ranklab {

// Returns `data` itself if no setting needs documents.
std::unique_ptr<RankData> with_documents(std::unique_ptr<RankData> data, const DocumentSettings& settings);

// The documents of tokens [B, S] under these settings; null if only losses are masked.
std::shared_ptr<const Documents> documents_of(const at::Tensor& tokens_BS, const DocumentSettings& settings);

}  // namespace ranklab
