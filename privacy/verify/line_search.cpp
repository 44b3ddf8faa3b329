#include "privacy/verify/line_search.hpp"

#include <algorithm>

#include "privacy/text/number.hpp"

namespace cudp::verify {

void LineSearch::begin(std::uint64_t step) {
  chosen_.clear();
  const auto known = after_.find(step);
  sizes_ = known != after_.end() ? known->second : Sizes{};
}

std::string LineSearch::follows(const transcript::Update& update, double shrink) {
  std::string wrong;
  double choice = 0.0;
  for (std::size_t i = 0; i < chosen_.size(); ++i) {
    const bool last = i + 1 == chosen_.size();
    choice = chosen_[i].size() == 1 ? chosen_[i][0] : -1.0;
    if (last ? !(choice > 0.0 && choice < kStepSizes) : choice != 0.0)
      wrong = "choice " + privacy::number(choice) + (last ? " is no step" : " was not taken");
    if (!last) sizes_.largest *= shrink;
  }
  const auto size =
      static_cast<double>(static_cast<float>(sizes_.largest * choice / (kStepSizes - 1)));
  if (chosen_.empty()) wrong = "no step size was chosen";
  if (wrong.empty() && update.learning_rate != size)
    wrong = "step size: expected " + privacy::number(size) + ", found " +
            privacy::number(update.learning_rate);
  chosen_.clear();

  sizes_.steps.push_back(update.learning_rate);
  if (sizes_.steps.size() == kWindow) {
    sizes_.largest = (1.0 + kWindowGrowth) * *std::ranges::max_element(sizes_.steps);
    sizes_.steps.clear();
  }
  after_[update.step + 1] = sizes_;
  return wrong;
}

}  // namespace cudp::verify
