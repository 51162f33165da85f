// `ranklab schedule`: lists, draws, verifies, times and compares pipeline schedules, and converts them to files and
// back. Nothing is trained, but `ranklab train` runs the same lists of actions.
#include <cstdio>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/common/command.h"
#include "cli/common/command_line.h"
#include "cli/common/json_output.h"
#include "cli/schedule/schedule_gantt.h"
#include "cli/schedule/schedule_json.h"
#include "cli/schedule/schedule_text.h"
#include "core/base/error.h"
#include "core/base/files/output_file.h"
#include "core/base/text.h"

namespace ranklab {
namespace {

constexpr int kMostPanels = 6;

struct Arguments {
  ScheduleOptions options;
  std::vector<std::string> what;
  std::string out;
  int width = 0;
  bool json = false, all = false, force = false;

  int columns() const { return width > 0 ? width : gantt_width(); }
};

void print(const std::string& text) { std::fputs(text.c_str(), stdout); }

LoadedSchedule sound(const std::string& what, const ScheduleOptions& options) {
  LoadedSchedule loaded = load_schedule(what, options);
  require_sound(loaded, what);
  return loaded;
}

int list(const Arguments& a) {
  print(a.json ? json_result(schedule_list_json()) : schedule_table());
  return 0;
}

int show(const Arguments& a) {
  const LoadedSchedule loaded = sound(a.what[0], a.options);
  const PipelineTimeline line = time_of(loaded);
  const Style style = style_for(stdout);
  if (a.json) {
    print(json_result(schedule_timeline_json(loaded, a.options, line), {}, -1));
    return 0;
  }
  GanttScale scale = gantt_scale(line, line.end, a.columns(), kMostPanels);
  scale.microseconds = loaded.known.has_value();
  const Schedule* const one[] = {&loaded.schedule};
  print(schedule_headline(loaded, a.options, style) + "\n");
  print(gantt(loaded.schedule, line, scale, style, {.end = line.end, .width = a.columns(), .all = a.all}));
  print("\n" + gantt_legend(one, scale, style) + "\n" + schedule_summary(loaded, a.options, line, style, a.all));
  return 0;
}

int simulate_one(const Arguments& a) {
  const LoadedSchedule loaded = sound(a.what[0], a.options);
  const PipelineTimeline line = time_of(loaded);
  const Style style = style_for(stdout);
  if (a.json) {
    print(json_result(schedule_json(loaded, a.options, line), {}, -1));
  } else {
    print(schedule_headline(loaded, a.options, style) + schedule_summary(loaded, a.options, line, style, a.all));
  }
  return 0;
}

int check(const Arguments& a) {
  const LoadedSchedule loaded = load_schedule(a.what[0], a.options);
  const std::vector<std::string> problems = loaded.problems();
  const Style style = style_for(stdout);
  const int code = problems.empty() ? 0 : exit_code(ErrorKind::kCheckFailed);
  if (a.json) {
    const auto data = schedule_proof_json(loaded, a.options);
    const Error wrong(
        ErrorKind::kCheckFailed,
        {.where = a.what[0], .what = "the schedule is wrong", .got = problems.empty() ? "" : problems[0]});
    print(code == 0 ? json_result(data) : json_error(wrong, data, code));
    return code;
  }
  if (problems.empty()) {
    print(a.what[0] + ": " + schedule_proof_text(loaded, style));
    return 0;
  }
  print(a.what[0] + ": " + style.red("wrong") +
        (loaded.file ? std::string(", read as ") + name(loaded.file->dialect) + "'s dialect" : "") + "\n");
  for (const std::string& problem : problems) print("  " + problem + "\n");
  if (loaded.file && loaded.file->dialect == ScheduleDialect::kTorch)
    print(style.dim("  in ranklab's letters: BW is torch's B, B is its I") + "\n");
  return code;
}

int compare(const Arguments& a) {
  std::vector<ComparedSchedule> all;
  double end = 0;
  for (const std::string& what : a.what) {
    LoadedSchedule loaded = sound(what, a.options);
    PipelineTimeline line = time_of(loaded);
    end = std::max(end, line.end);
    all.push_back({std::move(loaded), std::move(line)});
  }
  if (a.json) {
    nlohmann::ordered_json data = nlohmann::ordered_json::array();
    for (const ComparedSchedule& one : all) data.push_back(schedule_json(one.loaded, a.options, one.line));
    print(json_result({{"schedules", data}}, {}, -1));
    return 0;
  }
  const Style style = style_for(stdout);
  GanttScale scale;  // the coarsest scale that any of them needs
  std::vector<const Schedule*> schedules;
  for (const ComparedSchedule& one : all) {
    const GanttScale own = gantt_scale(one.line, end, a.columns(), 1);
    const bool coarser = own.dense || (!scale.dense && own.columns_per_time < scale.columns_per_time);
    if (schedules.empty() || coarser) scale = own;
    schedules.push_back(&one.loaded.schedule);
  }
  scale.microseconds = all[0].loaded.known.has_value();  // all get their costs in the same way
  for (const ComparedSchedule& one : all) {
    print(schedule_headline(one.loaded, a.options, style));
    const GanttView view = {.end = end, .width = a.columns(), .all = a.all, .axis = &one == &all.back()};
    print(gantt(one.loaded.schedule, one.line, scale, style, view) + "\n");
  }
  print(gantt_legend(schedules, scale, style) + "\n" + schedule_comparison(all, style));
  return 0;
}

// Writes a schedule to a file, or to stdout.
void deliver(const Schedule& schedule, const Arguments& a, ScheduleDialect dialect) {
  if (a.out.empty()) return print(schedule_csv(schedule, dialect));
  check_output({.path = a.out,
                .option = "--out",
                .inputs = {a.what[0], a.options.trace},
                .own = [&] { return begins_with(a.out, "# ranklab:"); },
                .force = a.force});
  write_schedule(schedule, a.out, dialect);
  std::fprintf(stderr, "wrote %s: %s's dialect, %d ranks, %d microbatches\n", a.out.c_str(), name(dialect),
               schedule.num_ranks(), schedule.num_microbatches);
}

int export_one(const Arguments& a, const std::string& dialect) {
  const ScheduleDialect target = schedule_dialect(dialect);
  RANKLAB_CHECK(target != ScheduleDialect::kAuto, ErrorKind::kInvalidArgument, .where = "--dialect",
                .what = "a file is written in one dialect", .got = "'auto'", .want = "torch or ranklab",
                .fix = "use --dialect torch for torch.distributed.pipelining");
  deliver(sound(a.what[0], a.options).schedule, a, target);
  return 0;
}

int import_one(const Arguments& a) {
  const LoadedSchedule loaded = sound(a.what[0], a.options);
  std::fprintf(stderr, "%s: %s", a.what[0].c_str(), schedule_proof_text(loaded, style_for(stderr)).c_str());
  deliver(loaded.schedule, a, ScheduleDialect::kRanklab);
  return 0;
}

void add_request(CommandLine& app, Arguments& a) {
  ScheduleOptions& o = a.options;
  app.add_option("--pp,--pipeline-model-parallel-size", o.num_ranks, "pipeline ranks (default 4)")->type_name("P");
  app.add_option("--num-microbatches", o.num_microbatches, "microbatches per step (default 8)")->type_name("M");
  app.add_option("--vpp,--num-virtual-stages-per-pipeline-rank", o.num_chunks,
                 "pipeline stages per rank, for interleaved-1f1b and looped-bfs (default 2)")
      ->type_name("V");
  app.add_option(
         "--microbatch-group-size-per-virtual-pipeline-stage,--microbatch-group-size-per-vp-stage", o.group_size,
         "interleaved-1f1b: microbatches that pass one stage of a rank before its next one begins (default 0: the "
         "fewest possible, one per rank if that divides them)")
      ->type_name("N");
  app.add_option("--f", o.costs.f, "time of a microbatch's forward on a rank, any unit")->capture_default_str();
  app.add_option("--b", o.costs.b, "time of its input gradient")->capture_default_str();
  app.add_option("--w", o.costs.w, "time of its weight gradient")->capture_default_str();
  app.add_option("--c", o.costs.c, "time of a message between ranks")->capture_default_str();
  app.add_option("--trace", o.trace,
                 "take the costs of each stage from a trace of ranklab train --pp, or its run's folder (microseconds)")
      ->type_name("FILE");
  add_model_options(app, o.model);
  app.add_flag("--overlap-moe-expert-parallel-comm", o.pairs,
               "run a backward and the next forward of a rank as one pair, as training with this flag does");
  app.add_option("--pair-factor", o.costs.pair_factor,
                 "time of an overlapped F and BW, as a fraction of both in sequence")
      ->capture_default_str();
  app.add_option("--weight-grad-memory", o.costs.weight_grad_memory,
                 "share of an activation that W still needs after B, 0 to 1 (for memory limits)")
      ->capture_default_str();
}
void add_dialect(CommandLine& app, Arguments& a) {
  app.add_option("--dialect", a.options.dialect,
                 "dialect of a FILE: torch (full backward is B), ranklab (full backward is BW), auto detects it")
      ->capture_default_str();
}
void add_out(CommandLine& app, Arguments& a) {
  app.add_option("--out", a.out, "file to write (default: stdout)");
  app.add_flag("--force", a.force, "overwrite an existing file");
}
void add_json(CommandLine& app, Arguments& a) { app.add_flag("--json", a.json, "print one JSON object"); }
void add_drawing(CommandLine& app, Arguments& a) {
  app.add_flag("--all", a.all, "draw all ranks, without a limit");
  app.add_option("--width", a.width, "columns (default: $COLUMNS, the terminal's, or 80)")->range(40, 1000);
}
std::vector<std::pair<std::string, std::string>> schedule_words() {
  std::vector<std::pair<std::string, std::string>> words;
  for (const ScheduleKind& kind : schedule_kinds()) words.emplace_back(kind.name, "");
  return words;
}
void add_what(CommandLine& app, Arguments& a, const char* name, const char* about) {
  CommandOption* what = app.add_option(name, a.what, about)->required()->expected(1);
  if (std::string_view(about) != "FILE") what->words(schedule_words());
}

using Run = std::function<int()>;

struct Commands {
  Arguments arguments;
  std::string export_dialect = "torch";
  std::vector<std::pair<CommandLine*, Run>> rows;
};

void add_viewers(CommandLine& app, Commands& c) {
  Arguments& a = c.arguments;
  CommandLine* listing = app.add_subcommand("list", "list the schedules with their bubble and memory");
  add_json(*listing, a);
  c.rows.emplace_back(listing, [&a] { return list(a); });

  CommandLine* showing = app.add_subcommand("show", "draw a schedule to scale, one row per rank");
  add_what(*showing, a, "schedule", "NAME or FILE");
  add_drawing(*showing, a);
  c.rows.emplace_back(showing, [&a] { return show(a); });

  CommandLine* timing =
      app.add_subcommand("simulate", "simulate a schedule: bubble, memory and idle time, without a drawing");
  add_what(*timing, a, "schedule", "NAME or FILE");
  timing->add_flag("--all", a.all, "print all ranks, without a limit");
  c.rows.emplace_back(timing, [&a] { return simulate_one(a); });

  CommandLine* comparing = app.add_subcommand("compare", "draw several schedules on one time scale");
  comparing->add_option("schedules", a.what, "NAME or FILE, two or more")
      ->required()
      ->expected(2, 12)
      ->words(schedule_words());
  add_drawing(*comparing, a);
  c.rows.emplace_back(comparing, [&a] { return compare(a); });
  for (CommandLine* one : {showing, timing, comparing}) {
    add_request(*one, a);
    add_dialect(*one, a);
    add_json(*one, a);
  }
}

void add_file_commands(CommandLine& app, Commands& c) {
  Arguments& a = c.arguments;
  CommandLine* checking = app.add_subcommand("check", "verify a schedule, or name the error (exit code 4)");
  add_what(*checking, a, "schedule", "FILE or NAME");
  add_request(*checking, a);
  add_dialect(*checking, a);
  add_json(*checking, a);
  c.rows.emplace_back(checking, [&a] { return check(a); });

  CommandLine* writing =
      app.add_subcommand("export", "write a schedule as a CSV file, in torch's or ranklab's dialect");
  add_what(*writing, a, "schedule", "NAME or FILE");
  add_out(*writing, a);
  writing->add_option("--dialect", c.export_dialect, "torch or ranklab")->capture_default_str();
  add_request(*writing, a);
  c.rows.emplace_back(writing, [&a, &c] { return export_one(a, c.export_dialect); });

  CommandLine* reading = app.add_subcommand("import", "read a CSV file, verify it, and write it in ranklab's dialect");
  add_what(*reading, a, "file", "FILE");
  add_out(*reading, a);
  add_dialect(*reading, a);
  c.rows.emplace_back(reading, [&a] { return import_one(a); });
}

}  // namespace

CommandAction setup_schedule(CommandLine& app) {
  app.require_subcommand(0, 1);
  auto commands = std::make_shared<Commands>();
  app.footer(
      "Examples:\n  ranklab schedule show 1f1b --pp 4 --num-microbatches 8\n"
      "  ranklab schedule compare 1f1b zb-h1 zb-v --pp 4 --num-microbatches 8\n"
      "  ranklab schedule export zb-v --pp 4 --num-microbatches 8 --dialect torch --out zbv.csv");
  add_viewers(app, *commands);
  add_file_commands(app, *commands);
  return [&app, commands] {
    read_costs(commands->arguments.options);
    for (const auto& [sub, run] : commands->rows)
      if (sub->parsed()) return run();
    std::printf("%s", app.help().c_str());
    return 0;
  };
}

}  // namespace ranklab
