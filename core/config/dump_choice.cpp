#include "core/config/dump_choice.h"

#include <charconv>
#include <sstream>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/config/batch_choice.h"
#include "core/config/train_config.h"

namespace ranklab {
namespace {

[[noreturn]] void refuse_word(const std::string& word, const std::string& want) {
  throw Error(ErrorKind::kInvalidArgument, {.where = "--at",
                                            .what = "it does not say when and where to dump",
                                            .got = quote(word),
                                            .want = want,
                                            .fix = "as in --at 'step=3..5 rank=0,4 microbatch=0 pass=forward'"});
}

int64_t whole_number(const std::string& word, const std::string& text) {
  int64_t value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 0)
    refuse_word(word, "whole numbers from 0 on");
  return value;
}

std::vector<std::string> between_commas(const std::string& text) {
  std::vector<std::string> parts;
  for (const std::string& part : split(text, ',')) {
    const size_t first = part.find_first_not_of(' '), last = part.find_last_not_of(' ');
    if (first != std::string::npos) parts.push_back(part.substr(first, last - first + 1));
  }
  return parts;
}

void take_word(DumpChoice& choice, const std::string& word) {
  const size_t equals = word.find('=');
  const std::string key = word.substr(0, equals), value = equals == std::string::npos ? "" : word.substr(equals + 1);
  if (key == "step") {
    const size_t dots = value.find("..");
    choice.first_step = whole_number(word, value.substr(0, dots));
    choice.last_step = dots == std::string::npos ? choice.first_step : whole_number(word, value.substr(dots + 2));
    if (choice.last_step < choice.first_step) refuse_word(word, "a last step that does not come before the first");
  } else if (key == "rank" || key == "microbatch") {
    std::set<int64_t>& numbers = key == "rank" ? choice.ranks : choice.microbatches;
    for (const std::string& part : between_commas(value)) numbers.insert(whole_number(word, part));
    if (numbers.empty()) refuse_word(word, "numbers, separated by commas");
  } else if (key == "pass") {
    choice.forward = value == "forward" || value == "both";
    choice.backward = value == "backward" || value == "both";
    if (!choice.forward && !choice.backward) refuse_word(word, "forward, backward or both");
  } else {
    refuse_word(word, "step=, rank=, microbatch= or pass=");
  }
}

}  // namespace

DumpChoice DumpChoice::in_run_from(int64_t begin) const {
  DumpChoice choice = *this;
  if (first_step < 0) choice.first_step = choice.last_step = begin;
  return choice;
}

DumpChoice dump_choice(const std::string& at) {
  DumpChoice choice;
  std::istringstream words(at);
  for (std::string word; words >> word;) take_word(choice, word);
  return choice;
}

void check_reached(const DumpChoice& choice, const DumpBounds& run) {
  const auto check = [](const char* key, int64_t named, int64_t count) {
    RANKLAB_CHECK(named < count, ErrorKind::kInvalidArgument, .where = "--at",
                  .what = std::string("the run has no such ") + key,
                  .got = std::string(key) + "=" + std::to_string(named),
                  .want = count == 1 ? "0" : "0 to " + std::to_string(count - 1), .fix = "name one that it has");
  };
  if (run.steps > 0) check("step", choice.first_step, run.steps);
  if (!choice.ranks.empty()) check("rank", *choice.ranks.rbegin(), run.ranks);
  if (!choice.microbatches.empty()) check("microbatch", *choice.microbatches.rbegin(), run.microbatches);
}

void check_reached(const RunPlan& asked) {
  check_reached(dump_choice(asked.config.dump_at), {.steps = knows_its_end(asked.config) ? asked.config.train_iters : 0,
                                                    .ranks = asked.mesh.world_size(),
                                                    .microbatches = asked.num_microbatches});
}

std::vector<std::string> dump_patterns(const std::string& modules) { return between_commas(modules); }

}  // namespace ranklab
