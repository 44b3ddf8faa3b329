#include "runtime/methods/method.hpp"

#include <algorithm>
#include <variant>

#include "privacy/mechanism/mechanism.hpp"

namespace cudp {

const std::vector<float>& MethodState::array(const std::string& name) const {
  static const std::vector<float> none;
  const auto found = std::ranges::find(arrays, name, [](const auto& a) { return a.first; });
  return found == arrays.end() ? none : found->second;
}

std::string real_numbers_obstacle(const std::string& what) {
  return what +
         ": its privacy is proved for real numbers only; what the last bits of the computer's "
         "numbers tell beyond epsilon is not bounded";
}

nlohmann::ordered_json releases_json(std::span<const privacy::Release> releases) {
  auto list = nlohmann::ordered_json::array();
  for (const privacy::Release& release : releases) {
    nlohmann::ordered_json j{{"mechanism", privacy::name(release.mechanism)}};
    if (const auto* gaussian = std::get_if<privacy::Gaussian>(&release.mechanism))
      j["sigma"] = gaussian->sigma;
    if (const auto* selection = std::get_if<privacy::BoundedRange>(&release.mechanism))
      j["epsilon"] = selection->epsilon;
    if (const auto* stated = std::get_if<privacy::ApproximateDp>(&release.mechanism)) {
      j["epsilon"] = stated->epsilon;
      if (stated->delta > 0.0) j["delta"] = stated->delta;
    }
    j["count"] = release.count;
    list.push_back(std::move(j));
  }
  return list;
}

}  // namespace cudp
