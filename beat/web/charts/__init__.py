"""Charts in SVG, made by pure functions. All text is escaped, and no meaning depends on colour alone."""
