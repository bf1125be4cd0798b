// SPDX-License-Identifier: Apache-2.0
// A JPEG file as the network's input.
#pragma once

#include <string>
#include <vector>

// The largest crop of the asked aspect from the middle, resized, scaled to 0..1 and normalised: [channels, height,
// width], float32. Throws std::runtime_error for a file that is no JPEG.
std::vector<float> read_image(const std::string& path, int channels, int height, int width);
