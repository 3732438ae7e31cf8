"""# Variations"""
