#include "runtime/methods/method.hpp"

#include <algorithm>

namespace cudp {

const std::vector<float>& MethodState::array(const std::string& name) const {
  static const std::vector<float> none;
  const auto found = std::ranges::find(arrays, name, [](const auto& a) { return a.first; });
  return found == arrays.end() ? none : found->second;
}

MethodState released_part(MethodState state) {
  std::erase_if(state.arrays, [](const auto& array) { return is_per_example(array.first); });
  return state;
}

std::string real_numbers_obstacle(const std::string& what) {
  return what +
         ": its privacy is proved for real numbers only; what the last bits of the computer's "
         "numbers tell beyond epsilon is not bounded";
}

}  // namespace cudp
