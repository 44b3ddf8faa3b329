#pragma once
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace cudp::privacy {

/// Parses JSON in which no key stands twice in an object: of two, one reader takes the first and
/// another the last. Throws std::invalid_argument, with the key; nlohmann::json::exception for what
/// is no JSON.
nlohmann::json parse_json(std::string_view text);

}  // namespace cudp::privacy
