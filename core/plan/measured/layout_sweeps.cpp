#include "core/plan/measured/layout_sweeps.h"

#include <algorithm>
#include <string_view>

namespace ranklab {
namespace {

// Whether a setting is part of the layout that a search chooses, including what the row's software does in that layout
// (sim.what_if; the machine is among the conditions). Software, model and batch are given.
bool of_layout(std::string_view key) {
  return key == "sim.what_if" || key == "train.micro_batch_size" || key.starts_with("memory.recompute") ||
         (key.starts_with("parallel.") && key != "parallel.world_size" && key != "parallel.attention_backend");
}

std::string settings_of(const MeasuredRun& run, bool layout) {
  std::string text = layout ? "" : run.source + "\n" + run.conditions;
  for (const ConfigSetting& setting : run.settings)
    if (of_layout(setting.key) == layout) text += "\n" + setting.key + "=" + setting.text;
  return text;
}

std::string setting_text(const MeasuredRun& run, std::string_view key) {
  const auto it = std::ranges::find(run.settings, key, &ConfigSetting::key);
  return it == run.settings.end() ? "?" : it->text;
}

std::string title_of(const MeasuredRun& run) {
  return setting_text(run, "model.num_layers") + " layers of " + setting_text(run, "model.hidden_size") + ", " +
         setting_text(run, "parallel.world_size") + " GPUs, batch " + setting_text(run, "train.global_batch_size") +
         " (" + run.source + ")";
}

struct Layout {
  std::string settings;
  const TimedRun* first;
  double measured_s = 0;  // sum over all its rows
  int rows = 0;

  double mean_s() const { return measured_s / rows; }
};

struct Sweep {
  std::string given;
  std::vector<Layout> layouts;
};

template <typename Items, typename Make>
auto& found_or_added(Items& items, auto key, const std::string& wanted, const Make& make) {
  const auto it = std::ranges::find(items, wanted, key);
  return it != items.end() ? *it : items.emplace_back(make());
}

LayoutSweep judged(const Sweep& sweep) {
  const Layout& chosen =
      *std::ranges::min_element(sweep.layouts, {}, [](const Layout& l) { return l.first->predicted_s; });
  const Layout& fastest = *std::ranges::min_element(sweep.layouts, {}, &Layout::mean_s);
  return {.what = title_of(*chosen.first->run),
          .layouts = sweep.layouts.size(),
          .chosen = chosen.first->run->id,
          .fastest = fastest.first->run->id,
          .chosen_s = chosen.mean_s(),
          .fastest_s = fastest.mean_s()};
}

}  // namespace

bool LayoutSweep::right() const { return chosen_s <= (1 + kAboutAsFast) * fastest_s; }

std::vector<LayoutSweep> layout_sweeps(std::span<const TimedRun> runs) {
  std::vector<Sweep> sweeps;
  for (const TimedRun& timed : runs) {
    const std::string given = settings_of(*timed.run, false), layout = settings_of(*timed.run, true);
    Sweep& sweep = found_or_added(sweeps, &Sweep::given, given, [&] { return Sweep{given, {}}; });
    Layout& one = found_or_added(sweep.layouts, &Layout::settings, layout, [&] { return Layout{layout, &timed}; });
    one.measured_s += *timed.run->measured.step_s;
    ++one.rows;
  }
  std::vector<LayoutSweep> out;
  for (const Sweep& sweep : sweeps)
    if (sweep.layouts.size() > 1) out.push_back(judged(sweep));
  return out;
}

}  // namespace ranklab
