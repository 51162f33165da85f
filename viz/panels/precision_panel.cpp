#include "viz/panels/precision_panel.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/text.h"
#include "viz/panels/parts/theme.h"
#include "viz/panels/parts/widgets.h"

namespace ranklab::viz {
namespace {

std::string percent(double share) { return strprintf("%.3f", 100 * share); }
std::string decibels(double value) { return std::isfinite(value) ? strprintf("%.1f", value) : "-"; }
std::string number(double value) { return strprintf("%.3g", value); }

// A column of numbers: its text and its sort key.
struct Column {
  const char* title;
  double (*value)(const TensorSample&);
  std::string (*text)(double);
};
constexpr std::array<Column, 7> kSampleColumns = {{
    {"underflow %", [](const TensorSample& s) { return s.underflow_share(); }, percent},
    {"saturated %", [](const TensorSample& s) { return s.saturated_share(); }, percent},
    {"SQNR dB", [](const TensorSample& s) { return s.sqnr_db(); }, decibels},
    {"amax", [](const TensorSample& s) { return s.amax; }, number},
    {"scale min", [](const TensorSample& s) { return s.scale_min; }, number},
    {"scale max", [](const TensorSample& s) { return s.scale_max; }, number},
    {"scale std", [](const TensorSample& s) { return s.scale_std; }, number},
}};
constexpr int kFactColumns = 3;  // module, tensor, format; then the numbers; the last column says what shares a scale

std::string_view role_text(TensorRole role) { return kTensorRoles[static_cast<size_t>(role)]; }

}  // namespace

const PrecisionTable& PrecisionPanel::table(Workspace& workspace) {
  if (rank_ >= static_cast<int>(workspace.store().ranks().size())) rank_ = -1;
  return table_.get({workspace.content(workspace.store().whole()), rank_},
                    [&] { return precision_table(workspace.store(), rank_); });
}

std::string PrecisionPanel::nothing_to_show(Workspace& workspace) {
  if (workspace.store().empty()) return workspace.why_empty();
  if (table(workspace).empty() && rank_ < 0)
    return "No statistics of quantized tensors in the trace.\n\n./ranklab train --dp 8 --precision-recipe mxfp8 "
           "--precision-stats-interval 5   records them";
  return {};
}

const TensorSeries* PrecisionPanel::series(Workspace& workspace) {
  const PrecisionTable& all = table(workspace);
  if (all.empty()) return nullptr;
  const TensorSeries* found = all.find(role_, module_);
  if (found == nullptr) {
    found = &all.tensors.front();
    choose(*found);
  }
  return found;
}

const TensorSample* PrecisionPanel::shown(Workspace& workspace) {
  const TensorSeries* chosen = series(workspace);
  return chosen == nullptr ? nullptr : chosen->at(table(workspace).step_at(workspace.step()));
}

const FormatRange& PrecisionPanel::tried_format(const TensorSample& sample) const {
  if (format_ >= 0) return format_ranges()[static_cast<size_t>(format_)];
  const FormatRange* own = sample.format();
  return own != nullptr ? *own : format_ranges().front();
}

void PrecisionPanel::choose(const TensorSeries& series) {
  module_ = series.module;
  role_ = series.role;
  group_ = -1;
}

void PrecisionPanel::draw(Workspace& workspace) {
  const PrecisionTable& all = table(workspace);
  controls(workspace, all);
  const TensorSeries* const chosen = series(workspace);
  const TensorSample* const sample = shown(workspace);
  if (chosen == nullptr || sample == nullptr) return dim_text("this rank has no quantized tensors");
  const ImVec2 space = ImGui::GetContentRegionAvail(), gap = ImGui::GetStyle().ItemSpacing;
  const bool beside = space.x > scaled(860);
  const ImVec2 part =
      beside ? ImVec2(std::floor((space.x - gap.x) * 0.45f), space.y) : ImVec2(space.x, space.y * 0.36f);
  if (ImGui::BeginChild("tensors", part)) tensors(workspace, all);
  ImGui::EndChild();
  if (beside) ImGui::SameLine();
  if (ImGui::BeginChild("details")) details(workspace, all, *chosen, *sample);
  ImGui::EndChild();
}

void PrecisionPanel::controls(Workspace& workspace, const PrecisionTable& all) {
  constexpr const char* kRoles[] = {"all", "activations", "weights", "gradients"};
  choice(kRoles, roles_);
  ImGui::SameLine();
  const auto label = [&](int rank) {
    return rank < 0 ? std::string("all ranks") : workspace.store().rank(static_cast<size_t>(rank)).label;
  };
  ImGui::SetNextItemWidth(scaled(130));
  if (ImGui::BeginCombo("##rank", label(rank_).c_str())) {
    for (int rank = -1; rank < static_cast<int>(workspace.store().ranks().size()); ++rank)
      if (ImGui::Selectable(label(rank).c_str(), rank == rank_)) rank_ = rank;
    ImGui::EndCombo();
  }
  tooltip(
      "tensor-parallel ranks have parts of a tensor, data-parallel ranks the same tensor for other tokens: their "
      "statistics are added up");
  same_line_if_fits(scaled(190));
  const int step = all.step_at(workspace.step());
  const auto place = std::lower_bound(all.steps.begin(), all.steps.end(), step);
  int index = static_cast<int>(place - all.steps.begin());
  const int last = static_cast<int>(all.steps.size()) - 1;
  ImGui::BeginDisabled(last <= 0);
  if (step_slider("##step", scaled(110), index, 0, std::max(last, 1), strprintf("step %d", step)) && index >= 0 &&
      index <= last)
    workspace.go_to_step(all.steps[static_cast<size_t>(index)]);
  ImGui::EndDisabled();
  same_line_if_fits(scaled(60));
  help_marker(
      "Underflow: nonzero numbers that became zero (or -0); zeros of the input do not count.\n"
      "Saturated: beyond the largest number of the format before rounding.\nSQNR: power of the numbers over power of "
      "their errors.\nOnly every few steps are sampled (--precision-stats-interval), of several microbatches the "
      "first.");
}

void PrecisionPanel::tensors(Workspace& workspace, const PrecisionTable& all) {
  constexpr ImGuiTableFlags kFlags = ImGuiTableFlags_Sortable | ImGuiTableFlags_SortTristate | ImGuiTableFlags_RowBg |
                                     ImGuiTableFlags_ScrollY | ImGuiTableFlags_ScrollX | ImGuiTableFlags_Resizable |
                                     ImGuiTableFlags_SizingFixedFit | ImGuiTableFlags_BordersInnerV;
  if (!ImGui::BeginTable("tensors", kFactColumns + static_cast<int>(kSampleColumns.size()) + 1, kFlags)) return;
  ImGui::TableSetupScrollFreeze(1, 1);
  for (const char* title : {"module", "tensor", "format"}) ImGui::TableSetupColumn(title, ImGuiTableColumnFlags_NoSort);
  // The tensor with the largest losses comes first.
  for (const Column& column : kSampleColumns)
    ImGui::TableSetupColumn(column.title,
                            ImGuiTableColumnFlags_PreferSortDescending |
                                (&column == kSampleColumns.data() ? ImGuiTableColumnFlags_DefaultSort : 0));
  ImGui::TableSetupColumn("scale of", ImGuiTableColumnFlags_NoSort);
  ImGui::TableHeadersRow();
  if (const ImGuiTableSortSpecs* specs = ImGui::TableGetSortSpecs()) {
    sort_column_ = specs->SpecsCount > 0 ? specs->Specs[0].ColumnIndex - kFactColumns : -1;
    ascending_ = specs->SpecsCount > 0 && specs->Specs[0].SortDirection == ImGuiSortDirection_Ascending;
  }
  const int step = all.step_at(workspace.step());
  std::vector<std::pair<const TensorSeries*, const TensorSample*>> rows;
  for (const TensorSeries& one : all.tensors) {
    const TensorSample* const sample = one.at(step);
    const bool wanted = roles_ == Roles::kAll || static_cast<int>(one.role) + 1 == static_cast<int>(roles_);
    if (wanted && sample != nullptr && sample->step == step) rows.emplace_back(&one, sample);
  }
  if (sort_column_ >= 0) {
    const auto value = kSampleColumns[static_cast<size_t>(sort_column_)].value;
    const auto key = [&](const auto& row) {
      const double one = value(*row.second);
      return std::isnan(one) ? INFINITY : one;
    };
    std::stable_sort(rows.begin(), rows.end(),
                     [&](const auto& a, const auto& b) { return ascending_ ? key(a) < key(b) : key(b) < key(a); });
  }
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(rows.size()));
  while (clipper.Step()) {
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
      ImGui::TableNextRow();
      ImGui::PushID(i);
      tensor_row(*rows[static_cast<size_t>(i)].first, *rows[static_cast<size_t>(i)].second);
      ImGui::PopID();
    }
  }
  ImGui::EndTable();
}

void PrecisionPanel::tensor_row(const TensorSeries& series, const TensorSample& sample) {
  ImGui::TableNextColumn();
  const bool chosen = series.module == module_ && series.role == role_;
  if (ImGui::Selectable(series.module.c_str(), chosen, ImGuiSelectableFlags_SpanAllColumns)) choose(series);
  const auto fact = [](const std::string& words) {
    ImGui::TableNextColumn();
    dim_text(words);
  };
  fact(std::string(role_text(series.role)));
  fact(sample.format_text());
  for (const Column& column : kSampleColumns) {
    ImGui::TableNextColumn();
    right_text(column.text(column.value(sample)));
  }
  fact(sample.groups_text());
}

void PrecisionPanel::details(Workspace& workspace, const PrecisionTable& all, const TensorSeries& series,
                             const TensorSample& sample) {
  text(series.module + ", " + std::string(role_text(series.role)));
  same_line_if_fits(scaled(240));
  dim_text(strprintf("step %d, %ld x %ld, %s, scales of %s", sample.step, static_cast<long>(sample.rows),
                     static_cast<long>(sample.cols), sample.format_text().c_str(), sample.groups_text().c_str()));
  requantize_line(sample);
  const ImVec2 space = ImGui::GetContentRegionAvail(), gap = ImGui::GetStyle().ItemSpacing;
  if (space.x < scaled(520) || space.y < scaled(480)) {
    constexpr const char* kPlots[] = {"magnitudes", "curves", "scales", "layers"};
    choice(kPlots, plot_);
    return plot(workspace, all, series, sample, plot_, ImGui::GetContentRegionAvail());
  }
  const ImVec2 half(std::floor((space.x - gap.x) / 2), std::floor((space.y - gap.y) / 2));
  for (const Plot which : {Plot::kMagnitudes, Plot::kCurves, Plot::kScales, Plot::kLayers}) {
    plot(workspace, all, series, sample, which, half);
    if (which == Plot::kMagnitudes || which == Plot::kScales) ImGui::SameLine();
  }
}

void PrecisionPanel::plot(Workspace& workspace, const PrecisionTable& all, const TensorSeries& series,
                          const TensorSample& sample, Plot which, ImVec2 size) {
  constexpr const char* kNames[] = {"magnitudes", "curves", "scales", "layers"};
  const float line = ImGui::GetFrameHeightWithSpacing();
  const ImVec2 below(size.x, std::max(size.y - line, 1.f));
  int step = -1;
  if (ImGui::BeginChild(kNames[static_cast<size_t>(which)], size)) {
    switch (which) {
      case Plot::kMagnitudes:
        plot_magnitudes(sample, tried_format(sample), scale_, {-1, size.y});
        break;
      case Plot::kCurves: {
        constexpr const char* kCurves[] = {"losses", "SQNR", "amax, scales"};
        choice(kCurves, curve_);
        step = plot_precision_curves(series, curve_, sample.step, {-1, below.y});
        break;
      }
      case Plot::kScales: {
        const std::string group = group_text(sample, group_);
        dim_text(group.empty() ? "scales of groups (the first of each dimension)" : group);
        const ScaleExponents range = scale_exponents(sample);
        if (group.empty() && range.low <= range.high) {
          ImGui::SameLine(0, scaled(14));
          heat_legend(strprintf("2^%.1f", range.low), strprintf("2^%.1f", range.high));
        }
        scale_heatmap(sample, range, group_, below);
        break;
      }
      case Plot::kLayers: {
        dim_text("underflow by layer and step");
        ImGui::SameLine(0, scaled(14));
        heat_legend("0", percent(largest_underflow(all, series.role)) + " %");
        const UnderflowPick pick = underflow_heatmap(all, series, sample.step, below);
        step = pick.step;
        const TensorSeries* picked = pick.step < 0 ? nullptr : all.find(series.role, pick.module);
        if (picked != nullptr) choose(*picked);
        break;
      }
    }
  }
  ImGui::EndChild();
  if (step >= 0) workspace.go_to_step(all.step_at(step));
}

void PrecisionPanel::requantize_line(const TensorSample& sample) {
  const FormatRange& format = tried_format(sample);
  dim_text("requantize with");
  ImGui::SameLine();
  ImGui::SetNextItemWidth(scaled(84));
  if (ImGui::BeginCombo("##format", std::string(format.name).c_str())) {
    for (int i = 0; i < static_cast<int>(format_ranges().size()); ++i) {
      const FormatRange& one = format_ranges()[static_cast<size_t>(i)];
      if (ImGui::Selectable(std::string(one.name).c_str(), one.name == format.name)) format_ = i;
    }
    ImGui::EndCombo();
  }
  ImGui::SameLine();
  ImGui::SetNextItemWidth(scaled(130));
  if (ImGui::BeginCombo("##scale", ("scale " + std::string(name(scale_))).c_str())) {
    for (int i = 0; i < static_cast<int>(ScaleChoice::kCount); ++i) {
      const auto one = static_cast<ScaleChoice>(i);
      if (ImGui::Selectable(std::string(name(one)).c_str(), one == scale_)) scale_ = one;
    }
    ImGui::EndCombo();
  }
  const RequantizeEstimate estimate = requantize(sample, format, scale_);
  const std::string lost =
      strprintf("underflow %s %%, saturated %s %%, SQNR %s dB", percent(estimate.underflow_share).c_str(),
                percent(estimate.saturated_share).c_str(), decibels(estimate.sqnr_db).c_str());
  same_line_if_fits(text_width(lost));
  text(lost);
  tooltip("estimated from the histogram, with one scale for the whole tensor; scales per block lose less");
  same_line_if_fits(scaled(300));
  dim_text(strprintf("the run: %s %%, %s %%, %s dB", percent(sample.underflow_share()).c_str(),
                     percent(sample.saturated_share()).c_str(), decibels(sample.sqnr_db()).c_str()));
}

}  // namespace ranklab::viz
