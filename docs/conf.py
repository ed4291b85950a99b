project = "Epsilometer"
extensions = ["myst_parser"]
html_theme = "furo"
html_title = "Epsilometer"
exclude_patterns = ["_build"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
