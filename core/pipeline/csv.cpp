#include "core/pipeline/csv.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <optional>

#include "core/base/error.h"
#include "core/base/files/input_file.h"
#include "core/base/text.h"
#include "core/base/utf8.h"
#include "core/pipeline/csv_messages.h"
#include "core/pipeline/schedules.h"

namespace ranklab {
namespace {

constexpr size_t kMostBytes = 32 << 20;
constexpr size_t kMostMessageProblems = 20;
constexpr int kLargestNumber = 65535;
constexpr std::string_view kHeader = "# ranklab:";

std::string_view trimmed(std::string_view text) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

std::string_view unquoted(std::string_view text) {
  const bool quoted = text.size() >= 2 && text.front() == '"' && text.back() == '"';
  return quoted ? text.substr(1, text.size() - 2) : text;
}

// Removes the text before `separator` and the separator, and returns that text.
std::string_view next_piece(std::string_view& text, char separator) {
  const size_t end = std::min(text.find(separator), text.size());
  const std::string_view piece = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return piece;
}

std::string shown(std::string_view cell) {
  std::string out(cell.substr(0, 40));
  std::replace_if(
      out.begin(), out.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return quote(out + (cell.size() > 40 ? "..." : ""));
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// A word such as "2F7" or "1UNSHARD": a stage, letters, and possibly a microbatch.
struct Word {
  int stage = 0;
  std::string_view letters;
  std::optional<int> microbatch;
};

std::optional<int> number(std::string_view digits) {
  int value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const bool whole = error == std::errc() && end == digits.data() + digits.size();
  return whole && is_digit(digits.front()) && value <= kLargestNumber ? std::optional(value) : std::nullopt;
}

std::optional<Word> word(std::string_view cell) {
  const auto first = std::find_if_not(cell.begin(), cell.end(), is_digit);
  const auto last = std::find_if_not(cell.rbegin(), cell.rend(), is_digit).base();
  if (first == cell.begin() || first >= last) return std::nullopt;
  const auto stage_size = static_cast<size_t>(first - cell.begin());
  const auto end_of_letters = static_cast<size_t>(last - cell.begin());
  Word out;
  const std::optional<int> stage = number(cell.substr(0, stage_size));
  if (!stage) return std::nullopt;
  out.stage = *stage;
  out.letters = cell.substr(stage_size, end_of_letters - stage_size);
  const std::string_view digits = cell.substr(end_of_letters);
  if (digits.empty()) return out;
  out.microbatch = number(digits);
  return out.microbatch ? std::optional(out) : std::nullopt;
}

struct Letters {
  std::string_view ranklab, torch;
  ActionKind kind;
};
constexpr std::array<Letters, 4> kLetters = {
    {{"F", "F", ActionKind::kF}, {"B", "I", ActionKind::kB}, {"W", "W", ActionKind::kW}, {"BW", "B", ActionKind::kBW}}};
constexpr std::array<std::string_view, 3> kDropped = {"UNSHARD", "RESHARD", "REDUCE_GRAD"};
constexpr std::array<std::string_view, 4> kMessages = {"SEND_F", "RECV_F", "SEND_B", "RECV_B"};

ScheduleDialect detect_dialect(std::string_view text) {
  const auto has = [&](std::string_view what) { return text.find(what) != std::string_view::npos; };
  if (text.starts_with('#') || has("BW") || has("&")) return ScheduleDialect::kRanklab;
  if (has("I") || has("_") || has("SHARD")) return ScheduleDialect::kTorch;
  // with only F and B, B must be the full backward
  return has("W") ? ScheduleDialect::kRanklab : ScheduleDialect::kTorch;
}

class Reader {
 public:
  Reader(std::string_view text, std::string where, ScheduleDialect dialect) : text_(text), where_(std::move(where)) {
    text_.remove_prefix(byte_order_mark(text_));
    file_.dialect = dialect == ScheduleDialect::kAuto ? detect_dialect(text_) : dialect;
  }

  ScheduleFile run() {
    while (!text_.empty() && (text_.back() == '\n' || text_.back() == '\r')) text_.remove_suffix(1);
    while (!text_.empty()) line(next_piece(text_, '\n'));
    finish();
    return std::move(file_);
  }

 private:
  bool torch() const { return file_.dialect == ScheduleDialect::kTorch; }

  [[noreturn]] void refuse(const std::string& what, const std::string& got, const std::string& want,
                           const std::string& fix) const {
    throw Error(ErrorKind::kBadFile, {.where = where_, .what = what, .got = got, .want = want, .fix = fix});
  }
  std::string place() const { return strprintf("row %d (rank %d), column %d", row_, rank_, column_); }
  [[noreturn]] void refuse_cell(std::string_view cell) const {
    refuse(place() + " is not an action", shown(cell),
           torch() ? "such as 2F7, 2I7, 2W7, 2B7, (2F7;5B3)OVERLAP_F_B, 2SEND_F7, 2UNSHARD; numbers up to 65535"
                   : "such as 2F7, 2B7, 2W7, 2BW7, 2F7&5BW3; numbers up to 65535",
           torch() ? "with ranklab's own letters (BW, &) use --dialect ranklab"
                   : "a file of torch.distributed.pipelining takes --dialect torch");
  }

  void line(std::string_view text) {
    ++row_;
    if (!torch() && text.starts_with('#')) {
      if (text.starts_with(kHeader)) header(trimmed(text.substr(kHeader.size())));
      return;
    }
    rank_ = static_cast<int>(file_.schedule.ranks.size());
    if (rank_ == kMostPipelineRanks)
      refuse("there are too many rows", "row " + std::to_string(row_), std::to_string(kMostPipelineRanks) + " at most",
             "one row for each rank");
    file_.schedule.ranks.emplace_back();
    for (column_ = 1; !text.empty(); ++column_) cell(trimmed(unquoted(trimmed(next_piece(text, ',')))));
  }

  void header(std::string_view text) {
    while (!text.empty()) {
      const std::string_view entry = next_piece(text, ' ');
      const size_t equals = entry.find('=');
      const std::string_view value = equals == std::string_view::npos ? "" : entry.substr(equals + 1);
      const int chain = value.empty() ? 0 : number(value).value_or(0);
      if (entry.starts_with("name=") && !value.empty() && value.size() <= 64) {
        file_.schedule.name = value;
      } else if (entry.starts_with("chain=") && chain > 0) {
        file_.schedule.chain_length = chain;
      } else if (!entry.empty()) {
        refuse("row " + std::to_string(row_) + " is not a header", shown(entry), "name=NAME chain=STAGES",
               "correct or remove the line");
      }
    }
  }

  void cell(std::string_view text) {
    if (text.empty()) return;  // an idle step
    const std::optional<Action> action = torch() ? torch_action(text) : ranklab_action(text);
    if (!action) return;  // a message, or a cell that is not part of the schedule
    add_stage(action->stage, action->microbatch);
    if (action->kind == ActionKind::kFBW) add_stage(action->back_stage, action->back_microbatch);
    file_.schedule.ranks.back().push_back(*action);
  }

  void add_stage(int stage, int microbatch) {
    std::vector<int>& ranks = file_.schedule.rank_of_stage;
    if (ranks.size() <= static_cast<size_t>(stage)) ranks.resize(static_cast<size_t>(stage) + 1, -1);
    if (ranks[static_cast<size_t>(stage)] < 0) ranks[static_cast<size_t>(stage)] = rank_;
    file_.schedule.num_microbatches = std::max(file_.schedule.num_microbatches, microbatch + 1);
  }

  Action simple(std::string_view text, std::string_view cell) const {
    const std::optional<Word> one = word(text);
    if (!one || !one->microbatch) refuse_cell(cell);
    for (const Letters& letters : kLetters) {
      if (one->letters == (torch() ? letters.torch : letters.ranklab))
        return {letters.kind, one->stage, *one->microbatch};
    }
    refuse_cell(cell);
  }
  Action overlapped(const Action& first, const Action& second, std::string_view cell) const {
    if (first.kind != ActionKind::kF || second.kind != ActionKind::kBW) refuse_cell(cell);
    return pair(first.stage, first.microbatch, second.stage, second.microbatch);
  }

  std::optional<Action> ranklab_action(std::string_view text) const {
    const size_t both = text.find('&');
    if (both == std::string_view::npos) return simple(text, text);
    return overlapped(simple(text.substr(0, both), text), simple(text.substr(both + 1), text), text);
  }

  std::optional<Action> torch_action(std::string_view text) {
    if (text.starts_with('(')) {
      const size_t end = text.find(")OVERLAP_F_B"), both = text.find(';');
      if (end == std::string_view::npos || end + 12 != text.size() || both == std::string_view::npos || both > end)
        refuse_cell(text);
      const Action first = simple(trimmed(text.substr(1, both - 1)), text);
      return overlapped(first, simple(trimmed(text.substr(both + 1, end - both - 1)), text), text);
    }
    const std::optional<Word> one = word(text);
    if (!one) refuse_cell(text);
    if (std::find(kDropped.begin(), kDropped.end(), one->letters) != kDropped.end()) return std::nullopt;
    if (std::find(kMessages.begin(), kMessages.end(), one->letters) == kMessages.end()) return simple(text, text);
    if (!one->microbatch) refuse_cell(text);
    messages_.push_back({.send = one->letters.starts_with("SEND"),
                         .forward = one->letters.ends_with("F"),
                         .stage = one->stage,
                         .microbatch = *one->microbatch,
                         .rank = rank_,
                         .position = static_cast<int>(file_.schedule.ranks.back().size()),
                         .place = place() + ": " + std::string(text)});
    return std::nullopt;
  }

  void finish() {
    Schedule& schedule = file_.schedule;
    if (schedule.rank_of_stage.empty())
      refuse("the file has no actions", shown(where_), "a row of actions for each rank", "see ranklab schedule export");
    const auto empty = std::find(schedule.ranks.begin(), schedule.ranks.end(), std::vector<Action>{});
    if (empty != schedule.ranks.end())
      refuse("a rank has no actions", "rank " + std::to_string(empty - schedule.ranks.begin()),
             "a row of actions for each rank", "remove empty rows, or give the rank a stage");
    const auto gap = std::find(schedule.rank_of_stage.begin(), schedule.rank_of_stage.end(), -1);
    if (gap != schedule.rank_of_stage.end())
      refuse("a stage is in no row", strprintf("stages up to %d", schedule.num_stages() - 1),
             strprintf("stage %d, too", static_cast<int>(gap - schedule.rank_of_stage.begin())),
             "number the stages from 0 without gaps");
    const int stages = schedule.num_stages();
    if (schedule.chain_length == 0) schedule.chain_length = stages;
    if (stages != schedule.chain_length && stages != 2 * schedule.chain_length)
      refuse("the header's chain does not fit the stages",
             strprintf("chain=%d, %d stages", schedule.chain_length, stages), "all stages or half of them",
             "correct the header");
    file_.messages = static_cast<int64_t>(messages_.size());
    file_.message_problems = message_problems(schedule, messages_, kMostMessageProblems);
  }

  std::string_view text_;
  std::string where_;
  ScheduleFile file_;
  std::vector<MessageCell> messages_;
  int row_ = 0, rank_ = 0, column_ = 0;
};

}  // namespace

const char* name(ScheduleDialect dialect) {
  if (dialect == ScheduleDialect::kAuto) return "auto";
  return dialect == ScheduleDialect::kTorch ? "torch" : "ranklab";
}

ScheduleDialect schedule_dialect(const std::string& text) {
  for (const ScheduleDialect d : {ScheduleDialect::kAuto, ScheduleDialect::kRanklab, ScheduleDialect::kTorch})
    if (text == name(d)) return d;
  const std::array<std::string, 3> names = {"auto", "ranklab", "torch"};
  const std::string nearest = nearest_name(text, names);
  throw Error(ErrorKind::kInvalidArgument,
              {.where = "--dialect",
               .what = "no such dialect",
               .got = quote(text),
               .want = "torch (B is the full backward), ranklab (BW is), or auto",
               .fix = "use --dialect " + (nearest.empty() ? std::string("auto") : nearest)});
}

ScheduleFile parse_schedule(std::string_view text, const std::string& where, ScheduleDialect dialect) {
  return Reader(text, where, dialect).run();
}

ScheduleFile read_schedule(const std::string& path, ScheduleDialect dialect) {
  const std::string text = read_whole_file(
      path, kMostBytes, {.where = "schedule", .fix = "a schedule is a name (ranklab schedule list) or a CSV file"});
  ScheduleFile file = parse_schedule(text, path, dialect);
  if (file.schedule.name.empty()) file.schedule.name = std::filesystem::path(path).stem().string();
  return file;
}

}  // namespace ranklab
