#include "lessons/glyphs.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/text.h"

namespace ranklab::lesson {

std::string heat(double share) {
  static constexpr std::array<const char*, 4> kShades = {"░", "▒", "▓", "█"};
  if (!(share >= 0)) return "?";
  if (share == 0) return "·";
  return kShades[static_cast<size_t>(std::clamp(std::ceil(share * 4) - 1, 0.0, 3.0))];
}

std::string height(double share) {
  static constexpr std::array<const char*, 8> kHeights = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  if (std::isnan(share)) return "?";
  return kHeights[static_cast<size_t>(std::clamp(share * 8, 0.0, 7.0))];
}

Cells heat_matrix(const std::string& title, const std::vector<std::vector<double>>& matrix, double most) {
  std::string head = "   ";
  for (size_t to = 0; to < (matrix.empty() ? 0 : matrix[0].size()); ++to) head += padded(std::to_string(to), 2);
  Cells lines = {title, head};
  for (size_t from = 0; from < matrix.size(); ++from) {
    std::string text = padded("r" + std::to_string(from), 3);
    for (const double value : matrix[from]) text += repeated(heat(most > 0 ? value / most : value), 2);
    lines.push_back(text);
  }
  return lines;
}

std::string owners(const std::vector<std::vector<size_t>>& owned, size_t count) {
  std::vector<std::string> cells(count, "·");
  for (size_t rank = 0; rank < owned.size(); ++rank) {
    for (const size_t element : owned[rank]) {
      if (element < count) cells[element] = cells[element] == "·" ? std::to_string(rank % 10) : "*";
    }
  }
  return join(cells, "");
}

double largest(const std::vector<std::vector<double>>& matrix) {
  double most = 0;
  for (const auto& row : matrix)
    for (const double value : row) most = std::max(most, value);
  return most;
}

}  // namespace ranklab::lesson
