#include "viz/model/svg/nice_step.h"

#include <cmath>
#include <initializer_list>

namespace ranklab::viz {

double nice_step(double length, int marks) {
  const double rough = length / marks, power = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= rough * (1 - 1e-9)) return factor * power;
  return 10 * power;
}

}  // namespace ranklab::viz
