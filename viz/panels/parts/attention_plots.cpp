#include "viz/panels/parts/attention_plots.h"

#include <algorithm>
#include <cmath>

#include "core/base/text.h"
#include "viz/model/store/time_text.h"
#include "viz/model/svg/palette.h"
#include "viz/panels/parts/theme.h"
#include "viz/panels/parts/widgets.h"

namespace ranklab::viz {
namespace {

constexpr float kPale = 0.5f;  // of a tile to come: how much of the background shows through

enum class State : uint8_t { kToCome, kRunning, kDone };

State state_of(const AttentionTile& tile, int64_t now_ns) {
  if (tile.done(now_ns)) return State::kDone;
  return tile.runs(now_ns) ? State::kRunning : State::kToCome;
}

ImU32 fill_of(size_t member, State state) {
  const ImU32 full = im_color(rank_colour(member));
  return state == State::kToCome ? blend(full, theme::kField, kPale) : full;
}

ImU32 text_on(ImU32 fill) {
  constexpr ImU32 kLight = IM_COL32(255, 255, 255, 255), kDark = IM_COL32(20, 24, 29, 255);
  return contrast(kDark, fill) >= contrast(kLight, fill) ? kDark : kLight;
}

float margin() { return scaled(58); }  // space to the left of the grid, for the names of query chunks

// The positions of tiles on the screen.
struct GridPlace {
  ImVec2 origin;
  float cell = 0;

  GridPlace(ImVec2 corner, ImVec2 size, int chunks) : origin(corner.x + margin(), corner.y + head()) {
    const float room = std::min(size.x - margin(), size.y - head() - scaled(4));
    cell = std::max(room / static_cast<float>(std::max(chunks, 1)), 1.f);
    if (cell > 4) cell = std::floor(cell);
  }
  static float head() { return 2 * ImGui::GetTextLineHeight() + scaled(4); }
  ImVec2 at(int query, int key) const {
    return {origin.x + cell * static_cast<float>(key), origin.y + cell * static_cast<float>(query)};
  }
};

void axes(const AttentionUse& use, ImVec2 corner, const GridPlace& place) {
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const float line = ImGui::GetTextLineHeight(), side = place.cell * static_cast<float>(use.chunks);
  const std::string words = use.striped ? strprintf("keys: every %d-th position", use.chunks)
                                        : strprintf("keys: %d chunks of %lld", use.chunks,
                                                    static_cast<long long>(use.positions / use.chunks));
  const std::string keys = elided(words, std::max(side, scaled(120)));
  draw.AddText({place.origin.x, corner.y}, theme::kDim, keys.c_str());
  draw.AddText({corner.x, corner.y + line}, theme::kDim, "queries");
  const int every = std::max(1, static_cast<int>(std::ceil(scaled(22) / place.cell)));
  for (int chunk = 0; chunk < use.chunks; chunk += every) {
    const std::string number = std::to_string(chunk);
    const float wide = place.cell * static_cast<float>(every);
    centred_text(draw, {place.at(0, chunk).x - (wide - place.cell) / 2, corner.y + line}, {wide, line}, theme::kDim,
                 number, 0.9f);
    const ImVec2 row = place.at(chunk, 0);
    draw.AddText({row.x - scaled(8) - text_width(number), row.y + (place.cell - line) / 2}, theme::kDim,
                 number.c_str());
  }
}

std::string positions_words(const AttentionUse& use, int chunk) {
  if (use.striped) return strprintf("%d, %d, %d ...", chunk, chunk + use.chunks, chunk + 2 * use.chunks);
  const int64_t each = use.positions / use.chunks;
  return strprintf("%lld to %lld", static_cast<long long>(chunk * each),
                   static_cast<long long>((chunk + 1) * each - 1));
}

void tell(Workspace& workspace, const AttentionGroup& group, const AttentionUse& use, size_t member,
          const AttentionTile& tile) {
  const TraceStore& store = workspace.store();
  if (!ImGui::BeginTooltip()) return;
  constexpr const char* kStates[] = {"to come", "running", "done"};
  text(store.rank(group.members[member]).label + ": " +
       kStates[static_cast<size_t>(state_of(tile, workspace.cursor.time_ns))]);
  if (!use.by_heads()) {
    dim_text("queries at positions " + positions_words(use, tile.query));
    dim_text("keys at positions " + positions_words(use, tile.key));
    dim_text(strprintf("%.0f pairs", tile.pairs));
  }
  dim_text(format_time(store, tile.range.length_ns()) + " at " +
           format_time(store, tile.range.begin_ns - store.range().begin_ns));
  ImGui::EndTooltip();
}

// Draws a tile with its tooltip, and handles clicks on it.
void draw_tile(Workspace& workspace, const AttentionGroup& group, const AttentionUse& use, size_t member,
               const AttentionTile& tile, const GridPlace& place) {
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const ImVec2 from = place.at(tile.query, tile.key);
  const float gap = place.cell > 6 ? 1 : 0;
  const ImVec2 to(from.x + place.cell - gap, from.y + place.cell - gap);
  const State state = state_of(tile, workspace.cursor.time_ns);
  const ImU32 fill = fill_of(member, state);
  // On the diagonal, queries only see the keys before them, so half of the square. The same is true of all chunks of
  // stripes.
  const bool half = tile.query == tile.key || use.striped;
  if (half)
    draw.AddTriangleFilled(from, {from.x, to.y}, to, fill);
  else
    draw.AddRectFilled(from, to, fill);
  if (state == State::kRunning) {
    draw.AddRect(from, to, theme::kOutline, 0, scaled(3));
    draw.AddRect({from.x + 1, from.y + 1}, {to.x - 1, to.y - 1}, theme::kCursor, 0, scaled(2));
  }
  if (place.cell >= scaled(15))
    centred_text(draw, half ? ImVec2(from.x, from.y + place.cell * 0.36f) : from,
                 half ? ImVec2(place.cell * 0.66f, place.cell * 0.66f) : ImVec2(place.cell, place.cell), text_on(fill),
                 std::to_string(workspace.store().rank(group.members[member]).global_rank), 0.92f);
  if (!ImGui::IsWindowHovered() || !ImGui::IsMouseHoveringRect(from, to)) return;
  draw.AddRect(from, to, theme::kOutline);
  tell(workspace, group, use, member, tile);
  if (ImGui::IsMouseClicked(ImGuiMouseButton_Left)) workspace.show_event(tile.event);
}

// For ranks with whole sequences: a small triangle for each rank.
void triangles(Workspace& workspace, const AttentionGroup& group, const AttentionUse& use, ImVec2 corner, ImVec2 size) {
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const size_t n = use.tiles.size(), across = std::max<size_t>(1, static_cast<size_t>(std::ceil(std::sqrt(n * 2.0))));
  const size_t down = (n + across - 1) / across;
  const float line = ImGui::GetTextLineHeightWithSpacing();
  const float side = std::max(std::min(size.x / static_cast<float>(across) - scaled(12),
                                       (size.y - line) / static_cast<float>(down) - line - scaled(6)),
                              scaled(10));
  draw.AddText(corner, theme::kDim, "keys across, queries down; each rank has its part of the heads");
  for (size_t member = 0; member < n; ++member) {
    const ImVec2 at(corner.x + (side + scaled(12)) * static_cast<float>(member % across),
                    corner.y + line + (side + line + scaled(6)) * static_cast<float>(member / across));
    const ImVec2 from(at.x, at.y + line), to(at.x + side, at.y + line + side);
    draw.AddText(at, theme::kDim,
                 ("r" + std::to_string(workspace.store().rank(group.members[member]).global_rank)).c_str());
    draw.AddRectFilled(from, to, theme::kField);
    if (use.tiles[member].empty()) continue;
    const AttentionTile& tile = use.tiles[member].front();
    const State state = state_of(tile, workspace.cursor.time_ns);
    draw.AddTriangleFilled(from, {from.x, to.y}, to, fill_of(member, state));
    if (state == State::kRunning) draw.AddTriangle(from, {from.x, to.y}, to, theme::kCursor, scaled(2));
    if (!ImGui::IsWindowHovered() || !ImGui::IsMouseHoveringRect(from, to)) continue;
    tell(workspace, group, use, member, tile);
    if (ImGui::IsMouseClicked(ImGuiMouseButton_Left)) workspace.show_event(tile.event);
  }
}

// How much of a rank's work is done; a running tile counts in proportion to its time.
double done_pairs(const AttentionUse& use, size_t member, int64_t now_ns) {
  double sum = 0;
  for (const AttentionTile& tile : use.tiles[member]) {
    const double pairs = use.by_heads() ? 1 : tile.pairs;
    if (tile.done(now_ns)) sum += pairs;
    if (tile.runs(now_ns)) sum += pairs * share_of(now_ns - tile.range.begin_ns, tile.range.length_ns());
  }
  return sum;
}

}  // namespace

float attention_grid_width(const AttentionUse& use, float height) {
  if (use.by_heads()) return height * 1.6f;
  return height - GridPlace::head() + margin();
}

void attention_grid(Workspace& workspace, const AttentionGroup& group, const AttentionUse& use, ImVec2 size) {
  const ImVec2 corner = ImGui::GetCursorScreenPos();
  ImGui::Dummy(size);
  if (use.by_heads()) return triangles(workspace, group, use, corner, size);
  const GridPlace place(corner, size, use.chunks);
  const float side = place.cell * static_cast<float>(use.chunks);
  axes(use, corner, place);
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  draw.AddRectFilled(place.origin, {place.origin.x + side, place.origin.y + side}, theme::kField);
  if (!use.striped)
    centred_text(draw, {place.origin.x + side * 0.4f, place.origin.y}, {side * 0.58f, side * 0.3f}, theme::kFaint,
                 "masked: keys after the queries", 0.92f);
  if (use.sharers() > 1)
    draw.AddText({corner.x, place.origin.y + side + scaled(4)}, theme::kDim, sharers_words(use).c_str());
  for (size_t member = use.tiles.size(); member-- > 0;)  // of ranks that share a block the first is on top
    for (const AttentionTile& tile : use.tiles[member]) draw_tile(workspace, group, use, member, tile, place);
}

void attention_shares(Workspace& workspace, const AttentionGroup& group, const AttentionUse& use, ImVec2 size) {
  const ImVec2 corner = ImGui::GetCursorScreenPos();
  ImGui::Dummy(size);
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const size_t n = use.tiles.size();
  const float line = ImGui::GetTextLineHeight(), label = scaled(34), numbers = scaled(126);
  const float height = std::clamp((size.y - line - scaled(8)) / static_cast<float>(n), scaled(6), scaled(34));
  const float width = std::max(size.x - label - numbers, scaled(40));
  const double most = std::max(use.imbalance(), 1.0), mean = use.mean_pairs();
  const float left = corner.x + label, top = corner.y + line + scaled(6);
  const float at_mean = left + width / static_cast<float>(most);
  for (size_t member = 0; member < n; ++member) {
    const float y = top + height * static_cast<float>(member);
    const double ratio = use.of_mean(member), all = mean * static_cast<double>(n);
    const double done = mean > 0 ? done_pairs(use, member, workspace.cursor.time_ns) / mean : 0;
    const auto to = [&](double of) { return left + width * static_cast<float>(of / most); };
    draw.AddRectFilled({left, y + 2}, {to(ratio), y + height - 2}, fill_of(member, State::kToCome));
    draw.AddRectFilled({left, y + 2}, {to(done), y + height - 2}, fill_of(member, State::kDone));
    if (height < line) continue;
    const float middle = y + (height - line) / 2;
    draw.AddText({corner.x, middle}, theme::kText,
                 ("r" + std::to_string(workspace.store().rank(group.members[member]).global_rank)).c_str());
    const std::string words =
        strprintf("%.2f x  %5s", ratio, format_percent(all > 0 ? use.pairs(member) / all : 0).c_str());
    draw.AddText({left + width + scaled(10), middle},
                 member == use.fullest() && ratio > 1.05 ? theme::kBad : theme::kText, words.c_str());
  }
  const std::string words = "mean";
  draw.AddLine({at_mean, top - scaled(2)}, {at_mean, top + height * static_cast<float>(n)}, theme::kText, scaled(1.5f));
  draw.AddText({std::min(at_mean - text_width(words) / 2, left + width - text_width(words)), corner.y}, theme::kText,
               words.c_str());
  draw.AddText({left + width + scaled(10), corner.y}, theme::kDim, "of mean, share");
}

void attention_legend() {
  const ImU32 colour = im_color(rank_colour(0));
  swatch(colour, "done");
  ImGui::SameLine(0, scaled(10));
  const ImVec2 at = ImGui::GetCursorScreenPos();
  swatch(colour, "running");
  const float side = ImGui::GetFontSize() * 0.7f, drop = (ImGui::GetItemRectSize().y - side) / 2;
  ImGui::GetWindowDrawList()->AddRect({at.x, at.y + drop}, {at.x + side, at.y + drop + side}, theme::kCursor, 0,
                                      scaled(2));
  ImGui::SameLine(0, scaled(10));
  swatch(blend(colour, theme::kField, kPale), "to come");
}

}  // namespace ranklab::viz
