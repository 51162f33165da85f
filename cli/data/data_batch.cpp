#include "cli/data/data_batch.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "cli/common/json_output.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/runtime/checkpoint/choice.h"
#include "core/runtime/data_identity.h"
#include "core/runtime/document_data.h"
#include "core/runtime/text/generate.h"
#include "core/runtime/text/text_codec.h"
#include "core/runtime/training_data.h"

namespace ranklab {
namespace {

using Json = nlohmann::ordered_json;

// The place in the data that some tokens come from.
struct DocumentPart {
  std::string name;
  int64_t offset = 0;  // in the document
  int64_t tokens = 0;
};

struct Sequence {
  DrawnSample drawn;
  int64_t offset = 0;  // in its data set
  std::vector<DocumentPart> documents = {};
  std::vector<int64_t> tokens = {};
  int64_t last_target = 0;           // the token after the last one; each other target is the next token
  std::vector<int64_t> starts = {};  // positions where documents begin, if the settings ask for documents
};

// The batch of a training step, or of a validation.
struct ShownBatch {
  const TrainingData& data;
  const BatchSource& source;
  int64_t number = 0;
  bool validation = false;

  bool of_its_own() const { return validation && !data.validation_sets.empty(); }
  const std::vector<DataSet>& sets() const { return of_its_own() ? data.validation_sets : data.sets; }
  const DataBlend& blend() const { return of_its_own() ? *data.validation_blend : *data.blend; }
  Split split() const { return validation && !of_its_own() ? Split::kValidation : Split::kTrain; }
  BatchShape shape() const { return validation ? source.shape() : source.shape_of(number); }
  TokenBatch tokens(int64_t microbatch, int dp_rank) const {
    return validation ? source.validation(number, microbatch, dp_rank) : source.train(number, microbatch, dp_rank);
  }
  std::vector<DrawnSample> drawn(int64_t microbatch, int dp_rank) const {
    return validation ? source.draw_validation(number, microbatch, dp_rank) : source.draw(number, microbatch, dp_rank);
  }
};

std::vector<DocumentPart> parts_of(const DataSet& data, int64_t begin, int64_t end) {
  std::vector<DocumentPart> parts;
  for (const DataDocument& document : data.documents) {
    const int64_t from = std::max(begin, document.begin), to = std::min(end, document.end);
    if (from < to) parts.push_back({document.name, from - document.begin, to - from});
  }
  return parts;
}

std::vector<Sequence> read_microbatch(const ShownBatch& shown, const DocumentSettings& settings, int64_t microbatch,
                                      int dp_rank) {
  const TokenBatch batch = shown.tokens(microbatch, dp_rank);
  DocumentSettings ends = settings;
  ends.reset_attention_mask = settings.any();  // the ends of documents are needed for masked losses, too
  const std::shared_ptr<const Documents> documents = documents_of(batch.tokens_BS, ends);
  const int64_t length = shown.source.seq_length();
  std::vector<Sequence> sequences;
  for (const DrawnSample& drawn : shown.drawn(microbatch, dp_rank)) {
    const auto row = static_cast<int64_t>(sequences.size());
    const int64_t* const tokens = batch.tokens_BS.const_data_ptr<int64_t>() + row * length;
    const DataSet& set = shown.sets()[drawn.set];
    Sequence one{.drawn = drawn, .offset = set.dataset->begin_of(shown.split(), drawn.sample)};
    one.documents = parts_of(set, one.offset, one.offset + length);
    one.tokens.assign(tokens, tokens + length);
    one.last_target = batch.targets_BS.const_data_ptr<int64_t>()[(row + 1) * length - 1];
    if (documents) one.starts = documents->starts[static_cast<size_t>(row)];
    sequences.push_back(std::move(one));
  }
  return sequences;
}

// Without a tokenizer, only byte tokens can be shown as text.
std::optional<std::string> text_of(const TrainingData& data, const Sequence& sequence) {
  if (data.text) return data.text->shown(sequence.tokens);
  if (!data.sets[0].are_bytes || data.vocab_size() > ByteTokenizer::kVocabSize) return {};
  return printable_text(sequence.tokens);
}

std::vector<int> ranks_of(const RunPlan& plan, int dp_rank) {
  std::vector<int> ranks;
  for (int rank = 0; rank < plan.mesh.world_size(); ++rank)
    if (plan.mesh.coordinate(Axis::kDp, rank) == dp_rank) ranks.push_back(rank);
  return ranks;
}

Json json_of(const ShownBatch& shown, const Sequence& sequence) {
  Json documents = Json::array();
  for (const DocumentPart& part : sequence.documents)
    documents.push_back({{"document", part.name}, {"offset", part.offset}, {"tokens", part.tokens}});
  const std::optional<std::string> text = text_of(shown.data, sequence);
  return {{"sequence", sequence.drawn.sequence},
          {"data_set", shown.sets()[sequence.drawn.set].source},
          {"epoch", sequence.drawn.epoch},
          {"sample", sequence.drawn.sample},
          {"offset", sequence.offset},
          {"documents", documents},
          {"document_starts", sequence.starts.empty() ? Json(nullptr) : Json(sequence.starts)},
          {"tokens", sequence.tokens},
          {"last_target", sequence.last_target},
          {"text", text ? Json(*text) : Json(nullptr)}};
}

// Prints one line, no wider than a terminal.
void print_sequence(const ShownBatch& shown, const Sequence& sequence) {
  constexpr size_t kShown = 48;
  std::string text = text_of(shown.data, sequence).value_or(join(sequence.tokens, " "));
  std::ranges::replace_if(
      text, [](char c) { return c == '\n' || c == '\t'; }, ' ');
  if (text.size() > kShown) {
    size_t cut = kShown;
    while (cut > 0 && (text[cut] & 0xC0) == 0x80) --cut;  // do not cut within a UTF-8 character
    text = text.substr(0, cut) + "...";
  }
  std::vector<std::string> places;
  for (const DocumentPart& part : sequence.documents)
    places.push_back(strprintf("%s %ld-%ld", part.name.c_str(), static_cast<long>(part.offset),
                               static_cast<long>(part.offset + part.tokens - 1)));
  const std::vector<DataSet>& sets = shown.sets();
  const std::string set = sets.size() == 1 ? "" : sets[sequence.drawn.set].path + "  ";
  std::printf("    sequence %ld  %ssample %ld  %s  \"%s\"\n", static_cast<long>(sequence.drawn.sequence), set.c_str(),
              static_cast<long>(sequence.drawn.sample), join(places, ", ").c_str(), text.c_str());
  if (!sequence.starts.empty()) std::printf("      documents begin at %s\n", join(sequence.starts, " ").c_str());
}

// As in a run that resumes from a checkpoint; validations are the same in every run.
BatchSource source_of(const DataBatchOptions& options, const TrainingData& data, const RunPlan& plan) {
  BatchSource source = make_batch_source(data, plan);
  if (plan.config.load.empty() || options.validation) return source;
  const int64_t step = options.step;
  const CheckpointChoice choice = choose_checkpoint(plan, data_identity(data));
  const DataCursor cursor = data_cursor(choice, plan.config.finetune);
  RANKLAB_CHECK(step >= cursor.step, ErrorKind::kInvalidArgument, .where = "--step",
                .what = "the run resumes from a checkpoint after this step", .got = std::to_string(step),
                .want = std::to_string(cursor.step) + " or more",
                .fix = "leave out --load to see the batches of the run before it");
  source.seek(cursor.step, cursor.samples);
  return source;
}

// Prints the microbatches of the ranks with one dp rank, or returns them as JSON.
Json show_ranks(const DataBatchOptions& options, const ShownBatch& shown, const DocumentSettings& settings, int dp_rank,
                const std::vector<int>& ranks) {
  if (!options.json) std::printf("dp rank %d: global rank %s\n", dp_rank, join(ranks, " ").c_str());
  Json microbatches = Json::array();
  for (int64_t microbatch = 0; microbatch < shown.shape().num_microbatches; ++microbatch) {
    if (!options.json) std::printf("  microbatch %ld\n", static_cast<long>(microbatch));
    Json sequences = Json::array();
    for (const Sequence& one : read_microbatch(shown, settings, microbatch, dp_rank)) {
      if (options.json) sequences.push_back(json_of(shown, one));
      if (!options.json) print_sequence(shown, one);
    }
    microbatches.push_back({{"microbatch", microbatch}, {"sequences", std::move(sequences)}});
  }
  return {{"dp_rank", dp_rank}, {"ranks", ranks}, {"microbatches", std::move(microbatches)}};
}

std::string passes_text(const TrainingData& data, const std::vector<double>& epochs) {
  std::vector<std::string> passes;
  for (size_t i = 0; i < epochs.size(); ++i)
    passes.push_back(strprintf("%.4g passes over ", epochs[i]) + data.sets[i].source);
  return join(passes, ", ");
}

// `epochs`: the number of passes over each set before this batch; empty for a validation, which starts from the
// beginning each time.
void print_heading(const ShownBatch& shown, const std::vector<double>& epochs) {
  const std::string sizes =
      strprintf("%ld sequences of %ld tokens", static_cast<long>(shown.shape().global_batch_size()),
                static_cast<long>(shown.source.seq_length()));
  const auto number = static_cast<long>(shown.number);
  if (shown.validation)
    std::printf("batch %ld of a validation: %s of %s\n", number, sizes.c_str(), shown.data.validated_on().c_str());
  else
    std::printf("step %ld: %s, after %s\n", number, sizes.c_str(), passes_text(shown.data, epochs).c_str());
}

Json sets_json(const ShownBatch& shown, const std::vector<double>& epochs) {
  Json sets = Json::array();
  for (size_t i = 0; i < shown.sets().size(); ++i)
    sets.push_back({{"source", shown.sets()[i].source},
                    {"share", shown.blend().shares()[i]},
                    {"epoch", epochs.empty() ? Json(nullptr) : Json(epochs[i])}});
  return sets;
}

}  // namespace

int print_data_batch(const DataBatchOptions& options) {
  const RunPlan plan = options.settings.resolve(options.settings.config());
  RANKLAB_CHECK(options.rank < plan.mesh.world_size(), ErrorKind::kInvalidArgument, .where = "--rank",
                .what = "no such rank", .got = std::to_string(options.rank),
                .want = "0 to " + std::to_string(plan.mesh.world_size() - 1), .fix = "see: ranklab topo");
  const TrainingData data = open_training_data(plan);
  const BatchSource source = source_of(options, data, plan);
  const ShownBatch shown{data, source, options.step, options.validation};
  const BatchShape shape = shown.shape();
  const std::vector<double> epochs = options.validation ? std::vector<double>{} : source.epochs(options.step);
  if (!options.json) print_heading(shown, epochs);
  Json batch = Json::array();
  for (int dp_rank = 0; dp_rank < shape.dp_size; ++dp_rank) {
    const std::vector<int> ranks = ranks_of(plan, dp_rank);
    if (options.rank < 0 || std::find(ranks.begin(), ranks.end(), options.rank) != ranks.end())
      batch.push_back(show_ranks(options, shown, plan.config.documents, dp_rank, ranks));
  }
  if (!options.json) return 0;
  std::printf("%s", json_result({{"step", options.step},
                                 {"validation", options.validation},
                                 {"source", options.validation ? data.validated_on() : data.source()},
                                 {"global_batch_size", shape.global_batch_size()},
                                 {"micro_batch_size", shape.micro_batch_size},
                                 {"seq_length", source.seq_length()},
                                 {"epoch", epochs.size() == 1 ? Json(epochs[0]) : Json(nullptr)},
                                 {"data_sets", sets_json(shown, epochs)},
                                 {"batch", std::move(batch)}})
                        .c_str());
  return 0;
}

}  // namespace ranklab
