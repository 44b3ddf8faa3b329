#include "privacy/text/json_text.hpp"

#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace cudp::privacy {

nlohmann::json parse_json(std::string_view text) {
  std::vector<std::set<std::string>> open;  // keys of the objects that are open at this position
  const auto see = [&](int, nlohmann::json::parse_event_t event, nlohmann::json& value) {
    using Event = nlohmann::json::parse_event_t;
    if (event == Event::object_start) open.emplace_back();
    if (event == Event::object_end) open.pop_back();
    if (event == Event::key && !open.back().insert(value.get<std::string>()).second)
      throw std::invalid_argument(value.get<std::string>() + ": expected it once, found it twice");
    return true;
  };
  return nlohmann::json::parse(text, see);
}

}  // namespace cudp::privacy
