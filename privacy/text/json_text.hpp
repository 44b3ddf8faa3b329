#pragma once
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace cudp::privacy {

/// Parses JSON. Rejects an object that has a key twice, because one reader takes its first value
/// and another its last. Throws std::invalid_argument with the key, or nlohmann::json::exception if
/// the text is not JSON.
nlohmann::json parse_json(std::string_view text);

}  // namespace cudp::privacy
