// Settings of context parallelism, and of documents packed into sequences.
#include "core/config/settings/field_makers.h"

namespace ranklab::fields {
namespace {

constexpr std::array kExchanges = {ContextExchange::kP2p, ContextExchange::kAllGather, ContextExchange::kAllToAll,
                                   ContextExchange::kAllToAllP2p};

// One exchange for all layers, or one for each layer: "a2a,p2p".
ConfigField exchanges() {
  ConfigField field{
      "parallel.cp_comm_type",
      {"--cp-comm-type"},
      "context-parallel attention: a ring of keys and values (p2p), all_gather, heads exchanged for positions (a2a: "
      "Ulysses), or a2a+p2p: heads within groups and a ring of groups; or a comma-separated list, one for each layer"};
  std::vector<std::string> names;
  for (const ContextExchange one : kExchanges) names.emplace_back(name(one));
  field.get = [](const TrainConfig& config) {
    const ContextSplit& split = config.context_split;
    if (split.by_layer.empty()) return std::string(name(split.exchange));
    std::vector<std::string> words;
    for (const ContextExchange one : split.by_layer) words.emplace_back(name(one));
    return join(words, ",");
  };
  field.set = [field, names](TrainConfig& config, const std::string& text) {
    std::vector<ContextExchange> chosen;
    for (const std::string& word : split(text, ',')) {
      const auto found = std::ranges::find(names, word);
      if (found == names.end()) refuse(field, text, "one of " + join(names, ", ") + ", or a list of them with commas");
      chosen.push_back(kExchanges[static_cast<size_t>(found - names.begin())]);
    }
    config.context_split.exchange = chosen.front();
    config.context_split.by_layer = chosen.size() > 1 ? chosen : std::vector<ContextExchange>{};
  };
  return field;
}

// "2,4"
ConfigField levels() {
  ConfigField field{"parallel.cp_sizes",
                    {"--hierarchical-context-parallel-sizes"},
                    "with a2a+p2p: ranks that exchange heads, and groups in the ring, e.g. 2,4 (default: as many ranks "
                    "as the heads allow)"};
  field.get = [](const TrainConfig& config) { return join(std::span<const int64_t>(config.context_sizes), ","); };
  field.set = [field](TrainConfig& config, const std::string& text) {
    config.context_sizes.clear();
    if (text.empty()) return;
    for (const std::string& part : split(text, ',')) config.context_sizes.push_back(parse_number<int64_t>(field, part));
    const bool sound = config.context_sizes.size() == 2 && std::ranges::min(config.context_sizes) >= 2;
    if (!sound) refuse(field, text, "two numbers of 2 and more, as 2,4");
  };
  return field;
}

}  // namespace

void add_context(FieldRows& rows) {
  rows.begin("Parallelism");
  rows.number("parallel.cp", {"--context-parallel-size", "--cp"},
              "context-parallel size: each rank holds a part of every sequence", RANKLAB_FIELD(parallel.cp), count(1));
  rows.add(exchanges());
  rows.add(levels());
  rows.choice("parallel.cp_balance", {"--cp-balance"},
              "positions of a context-parallel rank: one contiguous part, one early and one late chunk "
              "(zigzag), or every cp-th (stripe)",
              {"contiguous", "zigzag", "stripe"}, RANKLAB_FIELD(context_split.balance));
  rows.number("parallel.sep", {"--sep", "--sep-size"},
              "one group for sequences (Ulysses) and experts: short for --cp N --cp-comm-type a2a --ep N (0: off)",
              RANKLAB_FIELD(sep), count(0));
}

void add_documents(FieldRows& rows) {
  rows.begin("Data");
  rows.flag("data.reset_attention_mask", {"--reset-attention-mask"},
            "packed documents: a token attends only within its own document",
            RANKLAB_FIELD(documents.reset_attention_mask));
  rows.flag("data.reset_position_ids", {"--reset-position-ids"}, "positions restart at 0 in every document",
            RANKLAB_FIELD(documents.reset_position_ids));
  rows.flag("data.eod_mask_loss", {"--eod-mask-loss"}, "no loss for the token that follows the end of a document",
            RANKLAB_FIELD(documents.eod_mask_loss));
  rows.number("data.eod_token", {"--eod-token"}, "the token that ends a document", RANKLAB_FIELD(documents.eod_token),
              count(0));
}

}  // namespace ranklab::fields
